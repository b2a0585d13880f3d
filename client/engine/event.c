/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/event.h"

#include <stdlib.h>

#include "client/engine/connection.h"
#include "client/session/failure.h"

static gpushare_error check_event(gpushare_event *event)
{
    if (!event)
        return failure(GPUSHARE_ERROR_INVALID_HANDLE, "event: the handle is NULL");
    return connection_check(event->connection);
}

gpushare_error gpushare_event_create(gpushare_connection *connection, uint32_t flags,
                                     gpushare_event **event)
{
    gpushare_error error = connection_check(connection);
    if (error)
        return error;
    if (!event)
        return failure(GPUSHARE_ERROR_INVALID_VALUE, "event: the pointer is NULL");
    if (flags & ~GPUSHARE_EVENT_TIMING)
        return failure(GPUSHARE_ERROR_INVALID_VALUE,
                       "flags is 0x%x; only GPUSHARE_EVENT_TIMING is known", flags);
    struct proto_event_created reply = {0};
    struct session_call call = {.request = PROTO_EVENT_CREATE,
                                .reply = PROTO_EVENT_CREATED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_event *made = calloc(1, sizeof *made);
    if (!made)
        return failure(GPUSHARE_ERROR_OUT_OF_MEMORY, "this process has no memory left");
    if ((flags & GPUSHARE_EVENT_TIMING) && (error = connection_call(connection, &call))) {
        free(made);
        return error;
    }
    made->connection = connection;
    made->handle = reply.event;
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_lock(&connection->lists);
    made->next = connection->events;
    made->link = &connection->events;
    if (made->next)
        made->next->link = &made->next;
    connection->events = made;
    pthread_mutex_unlock(&connection->lists);
    *event = made;
    return GPUSHARE_SUCCESS;
}

gpushare_error gpushare_event_destroy(gpushare_event *event)
{
    if (!event)
        return GPUSHARE_SUCCESS;
    gpushare_connection *connection = event->connection;
    gpushare_error error = connection_check(connection);
    if (error)
        return error;
    pthread_mutex_lock(&connection->lists);
    *event->link = event->next;
    if (event->next)
        event->next->link = event->link;
    pthread_mutex_unlock(&connection->lists);
    if (event->handle) {
        struct proto_event_destroy body = {.event = event->handle};
        struct session_call call = {
            .request = PROTO_EVENT_DESTROY, .body = &body, .reply = PROTO_DONE};
        error = connection_call(connection, &call);
    }
    pthread_mutex_destroy(&event->lock);
    free(event);
    return error;
}

void event_forget(gpushare_connection *connection)
{
    for (struct gpushare_event *e = connection->events, *next; e; e = next) {
        next = e->next;
        pthread_mutex_destroy(&e->lock);
        free(e);
    }
    connection->events = NULL;
}

bool event_point(gpushare_event *event, uint32_t *stream, uint64_t *value)
{
    pthread_mutex_lock(&event->lock);
    bool recorded = event->recorded;
    *stream = event->stream;
    *value = event->value;
    pthread_mutex_unlock(&event->lock);
    return recorded;
}

gpushare_error gpushare_event_record(gpushare_event *event, gpushare_stream *handle)
{
    struct gpushare_stream *stream;
    gpushare_error error = check_event(event);
    if (error || (error = stream_resolve(event->connection, handle, &stream)) ||
        (error = stream_begin(stream)))
        return error;
    union {
        struct ring_descriptor descriptor;
        struct proto_command_event_record record;
    } u = {.record = {.opcode = PROTO_COMMAND_EVENT_RECORD, .event = event->handle}};
    if (event->handle)
        error = stream_push(stream, &u.descriptor);
    if (!error) {
        /* Within the stream's turn, so that of two records the later one stays. */
        pthread_mutex_lock(&event->lock);
        event->recorded = true;
        event->stream = stream->index;
        event->value = stream->producer.value;
        pthread_mutex_unlock(&event->lock);
    }
    stream_end(stream);
    return error;
}

gpushare_error gpushare_event_query(gpushare_event *event)
{
    uint32_t stream;
    uint64_t value;
    gpushare_error error = check_event(event);
    if (error)
        return error;
    if (event_point(event, &stream, &value) && !stream_reached(event->connection, stream, value))
        return GPUSHARE_ERROR_NOT_READY;
    return GPUSHARE_SUCCESS;
}

gpushare_error gpushare_event_synchronize(gpushare_event *event)
{
    uint32_t stream;
    uint64_t value;
    gpushare_error error = check_event(event);
    if (error || !event_point(event, &stream, &value))
        return error;
    error = stream_wait_value(event->connection, stream, value);
    return error ? error : connection_check(event->connection);
}

gpushare_error gpushare_event_elapsed(gpushare_event *start, gpushare_event *end,
                                      double *milliseconds)
{
    gpushare_event *both[2] = {start, end};
    gpushare_error error = check_event(start);
    if (error || (error = check_event(end)))
        return error;
    if (!milliseconds)
        return failure(GPUSHARE_ERROR_INVALID_VALUE, "milliseconds: the pointer is NULL");
    if (start->connection != end->connection)
        return failure(GPUSHARE_ERROR_INVALID_HANDLE,
                       "the events are of two connections, whose devices' clocks differ");
    for (int i = 0; i < 2; i++) {
        uint32_t stream;
        uint64_t value;
        if (!both[i]->handle || !event_point(both[i], &stream, &value))
            return failure(GPUSHARE_ERROR_INVALID_HANDLE, "the %s event %s", i ? "end" : "start",
                           both[i]->handle ? "was never recorded"
                                           : "takes no times; create it with "
                                             "GPUSHARE_EVENT_TIMING");
        if (!stream_reached(both[i]->connection, stream, value))
            return GPUSHARE_ERROR_NOT_READY;
    }
    struct proto_event_elapsed body = {.start = start->handle, .end = end->handle};
    struct proto_elapsed reply;
    struct session_call call = {.request = PROTO_EVENT_ELAPSED,
                                .body = &body,
                                .reply = PROTO_ELAPSED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    if ((error = connection_call(start->connection, &call)))
        return error;
    *milliseconds = (double)(int64_t)reply.nanoseconds / 1e6;
    return GPUSHARE_SUCCESS;
}
