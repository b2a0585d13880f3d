/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client_stream.h"

#include <stddef.h>

#include "server/worker/client.h"

uint64_t stream_reached(const struct stream *stream)
{
    return __atomic_load_n(stream->twin, __ATOMIC_ACQUIRE);
}

uint64_t stream_written(const struct stream *stream)
{
    return __atomic_load_n(&stream->written, __ATOMIC_ACQUIRE);
}

uint64_t stream_pushed(const struct stream *stream)
{
    return ring_pushed(&stream->ring);
}

uint64_t stream_status_address(const struct stream *stream)
{
    return stream->client->status_device + PROTO_STATUS_FIRST +
           stream->index * sizeof(struct proto_stream_status) +
           offsetof(struct proto_stream_status, completed);
}

uint64_t stream_twin_address(const struct stream *stream)
{
    return stream->client->twins_device + stream->index * sizeof(uint64_t);
}

bool stream_finished(const struct stream *stream)
{
    if (stream->state != STREAM_CLOSING)
        return false;
    uint64_t limit = stream->limit;
    if (!client_state_is_served(client_state(stream->client)) && limit > stream_written(stream))
        limit = stream_written(stream);
    return stream_reached(stream) >= limit;
}

void stream_report(struct stream *stream, uint32_t error)
{
    struct proto_stream_status *status = stream->ring.ring.status;
    __atomic_store_n(&status->error, error, __ATOMIC_RELAXED);
    /* Released after the number, so that who sees the count grow sees which error it was. */
    __atomic_fetch_add(&status->error_count, 1, __ATOMIC_RELEASE);
}

bool stream_hold_over(const struct stream *stream)
{
    const struct client *client = stream->client;
    for (uint32_t i = 0; i < stream->hold.count; i++) {
        const struct proto_dependency *on = &stream->hold.on[i];
        uint64_t there;
        if (on->link)
            there = __atomic_load_n((uint64_t *)client->objects.links[on->link - 1].twins.base +
                                        on->stream,
                                    __ATOMIC_ACQUIRE);
        else
            there = client->streams[on->stream].ring.value;
        if (there < on->value)
            return false;
    }
    return true;
}
