/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/event.h"

#include <stdlib.h>

#include "client/engine/connection.h"
#include "client/engine/peer.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

gpushare_error event_open(gpushare_connection *connection, uint32_t flags, gpushare_event **event)
{
    gpushare_error error;
    struct proto_event_create body = {0};
    struct proto_event_created reply = {0};
    struct session_call call = {.request = PROTO_EVENT_CREATE,
                                .body = &body,
                                .reply = PROTO_EVENT_CREATED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_event *made = calloc(1, sizeof *made);
    if (!made)
        return failure(MESSAGE(process_no_memory));
    if ((flags & GPUSHARE_EVENT_TIMING) && (error = connection_call(connection, &call))) {
        free(made);
        return error;
    }
    made->connection = connection;
    made->handle = reply.event;
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_lock(&connection->lists);
    list_prepend(&connection->events, &made->in_connection);
    pthread_mutex_unlock(&connection->lists);
    *event = made;
    return GPUSHARE_SUCCESS;
}

gpushare_error event_close(gpushare_event *event)
{
    gpushare_connection *connection = event->connection;
    gpushare_error error = GPUSHARE_SUCCESS;
    pthread_mutex_lock(&connection->lists);
    list_remove(&event->in_connection);
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

void event_delete_all(gpushare_connection *connection)
{
    struct gpushare_event *e;
    LIST_FOR_EACH (e, &connection->events, in_connection) {
        pthread_mutex_destroy(&e->lock);
        free(e);
    }
    list_init(&connection->events);
}

/* The stream and the timeline value that the event stands for now. Returns false if it was never
 * recorded. */
static bool find_point(gpushare_event *event, uint32_t *stream, uint64_t *value)
{
    pthread_mutex_lock(&event->lock);
    bool recorded = event->recorded;
    *stream = event->stream;
    *value = event->value;
    pthread_mutex_unlock(&event->lock);
    return recorded;
}

gpushare_error event_record(gpushare_event *event, struct gpushare_stream *stream)
{
    gpushare_error error = stream_begin(stream);
    if (error)
        return error;
    union {
        struct ring_descriptor descriptor;
        struct proto_command_event_record record;
    } u = {.record = {.opcode = PROTO_COMMAND_EVENT_RECORD, .event = event->handle}};
    if (event->handle)
        error = stream_push(stream, &u.descriptor);
    if (!error) {
        /* Under the stream's lock, so that of two records the later one remains. */
        pthread_mutex_lock(&event->lock);
        event->recorded = true;
        event->lost = false;
        /* A loss that begins meanwhile is this event's too. */
        event->settled =
            stream_has_recovered(event->connection, stream->index, stream->producer.value);
        event->stream = stream->index;
        event->value = stream->producer.value;
        pthread_mutex_unlock(&event->lock);
    }
    stream_end(stream);
    return error;
}

static gpushare_error fail_lost(void)
{
    return failure(MESSAGE(event_lost));
}

/* Whether the work at the point was lost that find_point has found. */
static bool point_is_lost(gpushare_event *event, uint32_t stream, uint64_t value)
{
    pthread_mutex_lock(&event->lock);
    bool same = event->stream == stream && event->value == value;
    bool lost = event->lost && same, settled = event->settled && same;
    pthread_mutex_unlock(&event->lock);
    return lost || (!settled && stream_has_lost(event->connection, stream, value));
}

gpushare_error event_query(gpushare_event *event)
{
    uint32_t stream;
    uint64_t value;
    if (!find_point(event, &stream, &value))
        return GPUSHARE_SUCCESS;
    if (!stream_has_reached(event->connection, stream, value))
        return GPUSHARE_ERROR_NOT_READY;
    return point_is_lost(event, stream, value) ? fail_lost() : GPUSHARE_SUCCESS;
}

gpushare_error event_wait(gpushare_event *event)
{
    uint32_t stream;
    uint64_t value;
    if (!find_point(event, &stream, &value))
        return GPUSHARE_SUCCESS;
    gpushare_error error = stream_await_value(event->connection, stream, value);
    if (!error && point_is_lost(event, stream, value))
        error = fail_lost();
    return error ? error : connection_check(event->connection);
}

gpushare_error event_hold_stream(gpushare_event *event, struct gpushare_stream *stream)
{
    gpushare_connection *connection = stream->connection;
    struct proto_dependency wait = {0};
    gpushare_error error;
    if (!find_point(event, &wait.stream, &wait.value))
        return GPUSHARE_SUCCESS;
    bool here = event->connection == connection;
    if (!here && (error = connection_check(event->connection)))
        return error;
    if (here && wait.stream == stream->index)
        return stream_check(stream);
    if (stream_has_reached(event->connection, wait.stream, wait.value))
        return point_is_lost(event, wait.stream, wait.value) ? fail_lost() : stream_check(stream);
    if (!here && (error = peer_link(connection, event->connection, &wait.link)))
        return error;
    if ((error = stream_begin(stream)))
        return error;
    error = stream_push_wait(stream, wait);
    stream_end(stream);
    return error;
}

gpushare_error event_elapsed(gpushare_event *start, gpushare_event *end, double *milliseconds)
{
    static const char *const parameters[2] = {"start", "end"};
    gpushare_event *both[2] = {start, end};
    if (start->connection != end->connection)
        return failure(MESSAGE(events_of_two));
    for (int i = 0; i < 2; i++) {
        uint32_t stream;
        uint64_t value;
        if (!both[i]->handle || !find_point(both[i], &stream, &value))
            return both[i]->handle ? failure(MESSAGE(event_unfit), parameters[i])
                                   : failure(MESSAGE(event_untimed), parameters[i]);
        if (!stream_has_reached(both[i]->connection, stream, value))
            return GPUSHARE_ERROR_NOT_READY;
        if (point_is_lost(both[i], stream, value))
            return fail_lost();
    }
    struct proto_event_elapsed body = {.start = start->handle, .end = end->handle};
    struct proto_elapsed reply;
    struct session_call call = {.request = PROTO_EVENT_ELAPSED,
                                .body = &body,
                                .reply = PROTO_ELAPSED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_error error = connection_call(start->connection, &call);
    if (!error)
        *milliseconds = (double)(int64_t)reply.nanoseconds / 1e6;
    return error;
}
