/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_stream.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "server/worker/control/control_retire.h"
int control_stream_create(struct request *request)
{
    const struct proto_stream_create *wanted = request->body;
    struct client *client = request->client;
    struct proto_stream_created created = {0};
    pthread_mutex_lock(&client->lock);
    struct client_stream *stream = client_stream_open(client, wanted->priority);
    if (stream) {
        created.stream = stream->index;
        created.priority = stream->priority;
        created.value = stream->ring.value;
    }
    pthread_mutex_unlock(&client->lock);
    if (!stream)
        return request_refuse(
            request, PROTO_ERROR_TOO_MANY_OBJECTS,
            "the client has as many streams as it may have: destroy one, or raise the server's "
            "--streams");
    return request_answer(request, PROTO_STREAM_CREATED, &created);
}

int control_stream_destroy(struct request *request)
{
    const struct proto_stream_destroy *wanted = request->body;
    struct client *client = request->client;
    pthread_mutex_lock(&client->lock);
    struct client_stream *stream = client_stream_find(client, wanted->stream);
    bool open = stream && stream->state == STREAM_OPEN;
    if (open)
        client_stream_close(client, stream);
    pthread_mutex_unlock(&client->lock);
    if (!open)
        return request_refuse(request, PROTO_ERROR_INVALID_HANDLE, "there is no such stream");
    control_stream_finish(request->worker, client);
    wake_completer(&request->worker->wake, true);
    return request_done(request);
}

void control_stream_finish(struct worker *worker, struct client *client)
{
    pthread_mutex_lock(&client->lock);
    for (uint32_t i = 0; client->shared.closing_count && i < client->stream_count; i++) {
        struct client_stream *stream = &client->streams[i];
        if (!client_stream_has_ended(stream))
            continue;
        stream_pool_unbind(&worker->pool, stream);
        bits_clear(client->shared.ready, i);
        stream->state = STREAM_FREE;
        client->shared.closing_count--;
    }
    pthread_mutex_unlock(&client->lock);
}

/* ---- events ---- */

/* A free slot of the events' table, or UINT32_MAX. Under client->lock. */
static uint32_t event_slot(struct client *client)
{
    for (uint32_t i = 0; client->objects.event_live < client->objects.event_count &&
                         i < client->objects.event_count;
         i++)
        if (!client->objects.events[i].handle)
            return i;
    uint32_t room = client->objects.event_count ? client->objects.event_count * 2 : 64;
    if (room > CLIENT_EVENTS_MAX)
        return UINT32_MAX;
    struct event *events = realloc(client->objects.events, room * sizeof *events);
    if (!events)
        return UINT32_MAX;
    memset(events + client->objects.event_count, 0,
           (room - client->objects.event_count) * sizeof *events);
    uint32_t slot = client->objects.event_count;
    client->objects.events = events;
    client->objects.event_count = room;
    return slot;
}

int control_event_create(struct request *request)
{
    struct client *client = request->client;
    const struct cuda_driver *cuda = client->device->cuda;
    cuda_event handle;
    cuda_result result = cuda->cuEventCreate(&handle, CUDA_EVENT_DEFAULT);
    if (result != CUDA_OK)
        return request_refuse(request, error_from_cuda((int)result), cuda_error_sentence(result));
    pthread_mutex_lock(&client->lock);
    uint32_t slot = event_slot(client);
    if (slot != UINT32_MAX) {
        client->objects.events[slot].handle = handle;
        client->objects.event_live++;
    }
    pthread_mutex_unlock(&client->lock);
    if (slot == UINT32_MAX) {
        cuda->cuEventDestroy(handle);
        return request_refuse(request, PROTO_ERROR_TOO_MANY_OBJECTS,
                              "the client has as many events as it may have");
    }
    struct proto_event_created created = {.event = slot + 1};
    return request_answer(request, PROTO_EVENT_CREATED, &created);
}

/* Copies a live event out of the table. Under no lock. */
static bool find_event(struct client *client, uint32_t handle, struct event *event)
{
    pthread_mutex_lock(&client->lock);
    bool known = handle - 1 < client->objects.event_count &&
                 client->objects.events[handle - 1].handle &&
                 !client->objects.events[handle - 1].dying;
    if (known)
        *event = client->objects.events[handle - 1];
    pthread_mutex_unlock(&client->lock);
    return known;
}

int control_event_destroy(struct request *request)
{
    const struct proto_event_destroy *wanted = request->body;
    struct client *client = request->client;
    struct event event;
    if (!find_event(client, wanted->event, &event))
        return request_refuse(request, PROTO_ERROR_INVALID_HANDLE, "there is no such event");
    pthread_mutex_lock(&client->lock);
    struct retirement *asked = retire_request(client, RETIRE_EVENT, 0);
    if (asked) {
        asked->handle = wanted->event;
        client->objects.events[wanted->event - 1].dying = asked;
    }
    pthread_mutex_unlock(&client->lock);
    /* Its caller has no use for the moment at which it is gone. */
    int error = control_retire_answer(request, asked);
    return error < 0 || !asked ? error : request_done(request);
}

int control_event_elapsed(struct request *request)
{
    const struct proto_event_elapsed *wanted = request->body;
    struct client *client = request->client;
    struct event start, end;
    float milliseconds = 0;
    if (!find_event(client, wanted->start, &start) || !find_event(client, wanted->end, &end))
        return request_refuse(request, PROTO_ERROR_INVALID_HANDLE, "there is no such event");
    if (!start.recorded || !end.recorded)
        return request_refuse(request, PROTO_ERROR_INVALID_HANDLE, "an event was never recorded");
    cuda_result result =
        client->device->cuda->cuEventElapsedTime(&milliseconds, start.handle, end.handle);
    if (result != CUDA_OK)
        return request_refuse(request, error_from_cuda((int)result), cuda_error_sentence(result));
    struct proto_elapsed elapsed = {
        .nanoseconds = (uint64_t)(int64_t)((double)milliseconds * 1e6),
    };
    return request_answer(request, PROTO_ELAPSED, &elapsed);
}
