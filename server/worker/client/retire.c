/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/retire.h"

#include <stdlib.h>

#include "server/worker/client/client.h"

struct retirement *retire_request(struct client *client, enum retire_kind kind, uint64_t serial)
{
    struct retirement *request =
        calloc(1, sizeof *request + client->stream_count * sizeof *request->targets);
    if (!request)
        return NULL;
    request->kind = kind;
    request->serial = serial;
    request->streams = client->stream_count;
    for (uint32_t i = 0; i < client->stream_count; i++) {
        const struct client_stream *stream = &client->streams[i];
        if (stream->state == STREAM_OPEN)
            request->targets[i] = client_stream_pushed(stream);
        else if (stream->state == STREAM_CLOSING)
            request->targets[i] = stream->limit;
    }
    queue_append(&client->shared.frees, &request->link);
    client_signal_completer(client);
    return request;
}

bool retire_ready(const struct client *client, const struct retirement *request)
{
    for (uint32_t i = 0; i < request->streams; i++) {
        const struct client_stream *stream = &client->streams[i];
        uint64_t target = request->targets[i];
        /* If the client's rings are read no more, only submitted work will ever end. */
        if (!client_state_is_served(client_state(client)) && target > client_stream_written(stream))
            target = client_stream_written(stream);
        if (client_stream_reached(stream) < target)
            return false;
    }
    return true;
}

bool retire_covers(const struct retirement *request, uint32_t stream, uint64_t value)
{
    return stream < request->streams && value <= request->targets[stream];
}

/* Issued values only grow, so no request is ready before the one in front of it. Looking at the
 * first one is enough, and a client with tens of thousands of requests costs no other client
 * time. */
bool retire_any_ready(const struct client *client)
{
    const struct retirement *first = QUEUE_FIRST(&client->shared.frees, struct retirement, link);
    return first && retire_ready(client, first);
}

struct retirement *retire_take(struct client *client)
{
    return retire_any_ready(client) ? QUEUE_TAKE(&client->shared.frees, struct retirement, link)
                                    : NULL;
}
