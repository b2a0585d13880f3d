/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_stream.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/error.h"
#include "common/messages.h"
#include "server/worker/control/control_retire.h"
#include "server/worker/control/control_call.h"
#include "server/worker/control/control_making.h"
#include "server/worker/control/reply.h"

int control_stream_create(struct request *request)
{
    const struct proto_stream_create *wanted = request->body;
    struct client *client = request->client;
    struct proto_stream_created created = {0};
    int32_t priority = 0;
    client_lock(client);
    struct client_stream *stream =
        client->control.restoring ? client_stream_find(client, wanted->stream) : NULL;
    if (!stream)
        stream = client_stream_open(client, wanted->stream, wanted->priority);
    if (stream) {
        created.stream = stream->index;
        /* The one that its client may know of: being at home is no wish of it. */
        created.priority = client_stream_priority(client, stream, false);
        priority = stream->priority;
        created.value = stream->ring.value;
    }
    struct partition *partition = client->shared.partition;
    pthread_mutex_unlock(&client->lock);
    if (!stream)
        return request_refuse(request, MESSAGE(stream_exists), wanted->stream);
    /* Until there is one of its priority, the stream runs at another's. */
    if (partition)
        control_making_stream(request->worker, partition, priority);
    return request_answer(request, PROTO_STREAM_CREATED, &created);
}

int control_stream_destroy(struct request *request)
{
    const struct proto_stream_destroy *wanted = request->body;
    struct client *client = request->client;
    struct proto_worker_stream_ended ended = {.stream = wanted->stream};
    client_lock(client);
    struct client_stream *stream = client_stream_find(client, wanted->stream);
    bool open = stream && stream->state == STREAM_OPEN;
    bool closing = stream && stream->state == STREAM_CLOSING;
    if (open)
        client_stream_close(client, stream);
    pthread_mutex_unlock(&client->lock);
    if (!open && client->control.forgiving) {
        int told = closing ? 0
                           : reply_send(request->worker, PROTO_WORKER_STREAM_ENDED, 0,
                                        client->number, &ended);
        return told < 0 ? told : request_done(request);
    }
    if (!open)
        return request_refuse(request, MESSAGE(stream_unknown), wanted->stream);
    int error = control_stream_finish(request->worker, client);
    wake_completer(&request->worker->wake, true);
    return error < 0 ? error : request_done(request);
}

int control_stream_recover(struct request *request)
{
    const struct proto_stream_recover *wanted = request->body;
    struct client *client = request->client;
    struct proto_stream_recovered recovered = {0};
    client_lock(client);
    struct client_stream *stream = client_stream_find(client, wanted->stream);
    bool done = stream && client_stream_recover(stream, &recovered.finished, &recovered.dropped);
    pthread_mutex_unlock(&client->lock);
    if (!stream)
        return request_refuse(request, MESSAGE(stream_unknown), wanted->stream);
    if (!done)
        return request_refuse(request, MESSAGE(stream_drops), wanted->stream);
    return request_answer(request, PROTO_STREAM_RECOVERED, &recovered);
}

/* Frees one closed stream whose work is done. Returns its number, or 0; stream 0 is never
 * closed. */
static uint32_t free_ended_stream(struct worker *worker, struct client *client)
{
    uint32_t freed = 0;
    client_lock(client);
    for (uint32_t i = 1; !freed && client->shared.closing_count && i < client->stream_count; i++) {
        struct client_stream *stream = &client->streams[i];
        if (!client_stream_has_ended(stream))
            continue;
        stream_pool_unbind(&worker->pool, stream);
        client_stream_free(client, stream);
        freed = i;
    }
    pthread_mutex_unlock(&client->lock);
    return freed;
}

/* Tells the supervisor without holding the client's lock, since the socket may be full. */
int control_stream_finish(struct worker *worker, struct client *client)
{
    int error = 0;
    uint32_t freed;
    while (error >= 0 && (freed = free_ended_stream(worker, client))) {
        struct proto_worker_stream_ended ended = {.stream = freed};
        error = reply_send(worker, PROTO_WORKER_STREAM_ENDED, 0, client->number, &ended);
    }
    return error;
}

/* ---- events ---- */

/* Makes room for an event of this number. Returns false if memory is short. Under client->lock. */
static bool reserve_event(struct client *client, uint32_t number)
{
    struct client_objects *objects = &client->objects;
    if (array_reserve(objects->events, objects->event_room, number) < 0)
        return false;
    for (; objects->event_count < number; objects->event_count++)
        objects->events[objects->event_count] = (struct event){.handle = NULL};
    return true;
}

struct event_call {
    struct control_call control;
    uint32_t number;
    cuda_event handle;
    cuda_result result;
};

static bool has_event(const struct client *client, uint32_t number)
{
    return number - 1 < client->objects.event_count && client->objects.events[number - 1].handle;
}

/* The call that makes this event, which is not there yet; or NULL. */
static struct control_call *find_making(const struct client *client, uint32_t number)
{
    return number - 1 < client->objects.event_count ? client->objects.events[number - 1].making
                                                    : NULL;
}

static bool make_event(struct driver_call *driver_call)
{
    struct event_call *call = container_of(driver_call, struct event_call, control.call);
    const struct cuda_driver *cuda = call->control.request.client->gpu->cuda;
    call->result = cuda->cuEventCreate(&call->handle, CUDA_EVENT_DEFAULT);
    return false;
}

static int end_event(struct control_call *control)
{
    struct event_call *call = container_of(control, struct event_call, control);
    struct request *request = &control->request;
    struct client *client = request->client;
    bool made = call->result == CUDA_OK;
    client_lock(client);
    struct event *event = &client->objects.events[call->number - 1];
    event->making = NULL;
    if (made) {
        event->handle = call->handle;
        event->restored = client->control.restoring;
        client->objects.event_live++;
    }
    pthread_mutex_unlock(&client->lock);
    if (!made)
        return request_refuse(request, error_from_cuda((int)call->result),
                              MESSAGE_TEXT(event_create), cuda_driver_error_sentence(call->result));
    struct proto_event_created created = {.event = call->number};
    return request_answer(request, PROTO_EVENT_CREATED, &created);
}

/* The event's slot is kept for the call: there is no event that would have to be destroyed here,
 * because a number was taken meanwhile or there was no room. */
static int begin_event(struct request *request, uint32_t number)
{
    struct client *client = request->client;
    struct event_call *call = control_call_new(request, sizeof *call, make_event, end_event);
    if (!call)
        return request_refuse(request, MESSAGE(worker_no_memory));
    client_lock(client);
    bool reserved = reserve_event(client, number);
    if (reserved)
        client->objects.events[number - 1].making = &call->control;
    pthread_mutex_unlock(&client->lock);
    if (!reserved) {
        free(call);
        return request_refuse(request, MESSAGE(event_no_memory));
    }
    call->number = number;
    control_call_leave(&call->control);
    return 0;
}

int control_event_create(struct request *request)
{
    const struct proto_event_create *wanted = request->body;
    struct control_call *making = find_making(request->client, wanted->event);
    bool restoring = request->client->control.restoring;
    bool there = has_event(request->client, wanted->event);
    if (there && restoring) {
        struct proto_event_created created = {.event = wanted->event};
        return request_answer(request, PROTO_EVENT_CREATED, &created);
    }
    if (making && restoring) {
        /* The supervisor before had asked for it. */
        making->request.serial = request->serial;
        return 0;
    }
    if (!wanted->event || there || making)
        return request_refuse(request, MESSAGE(event_exists), wanted->event);
    return begin_event(request, wanted->event);
}

/* Copies an event that is not being destroyed out of the table. Takes the lock. */
static bool find_event(struct client *client, uint32_t handle, struct event *event)
{
    client_lock(client);
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
    struct proto_worker_event_ended ended = {.event = wanted->event};
    bool found = find_event(client, wanted->event, &event);
    if (!found && client->control.forgiving) {
        int told =
            has_event(client, wanted->event)
                ? 0
                : reply_send(request->worker, PROTO_WORKER_EVENT_ENDED, 0, client->number, &ended);
        return told < 0 ? told : request_done(request);
    }
    if (!found)
        return request_refuse(request, MESSAGE(event_unknown), wanted->event);
    client_lock(client);
    struct retirement *asked = control_retire_request(client, RETIRE_EVENT, 0);
    if (asked) {
        asked->handle = wanted->event;
        client->objects.events[wanted->event - 1].dying = asked;
    }
    pthread_mutex_unlock(&client->lock);
    /* Answered now: the client need not know when the event is gone. */
    int error = control_retire_answer(request, asked);
    return error < 0 || !asked ? error : request_done(request);
}

int control_event_elapsed(struct request *request)
{
    const struct proto_event_elapsed *wanted = request->body;
    struct client *client = request->client;
    struct event start, end;
    float milliseconds = 0;
    if (!find_event(client, wanted->start, &start))
        return request_refuse(request, MESSAGE(event_unknown), wanted->start);
    if (!find_event(client, wanted->end, &end))
        return request_refuse(request, MESSAGE(event_unknown), wanted->end);
    if ((start.restored && !start.recorded) || (end.restored && !end.recorded))
        return request_refuse(request, MESSAGE(event_time_lost),
                              start.recorded ? wanted->end : wanted->start);
    if (!start.recorded || !end.recorded)
        return request_refuse(request, MESSAGE(event_not_recorded),
                              start.recorded ? wanted->end : wanted->start);
    cuda_result result =
        client->gpu->cuda->cuEventElapsedTime(&milliseconds, start.handle, end.handle);
    if (result != CUDA_OK)
        return request_refuse(request, error_from_cuda((int)result), MESSAGE_TEXT(event_elapsed),
                              wanted->start, wanted->end, cuda_driver_error_sentence(result));
    struct proto_elapsed elapsed = {
        .nanoseconds = (uint64_t)(int64_t)((double)milliseconds * 1e6),
    };
    return request_answer(request, PROTO_ELAPSED, &elapsed);
}
