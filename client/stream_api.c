/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Streams. */
#include "client/abi.h"
#include "client/engine/connection.h"
#include "client/engine/event.h"
#include "client/engine/recovery.h"
#include "client/engine/stream.h"
#include "client/engine/thread_stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

static gpushare_error check_stream(gpushare_connection *connection, gpushare_stream *handle,
                                   struct gpushare_stream **stream)
{
    gpushare_error error = connection_check(connection);
    return error ? error : thread_stream_resolve(connection, handle, stream);
}

gpushare_error gpushare_stream_create(gpushare_connection *connection, uint32_t flags,
                                      int32_t priority, gpushare_stream **stream)
{
    gpushare_error error = connection_check(connection);
    if (error)
        return error;
    if (!stream)
        return failure(MESSAGE(stream_pointer_null));
    if (flags & ~GPUSHARE_STREAM_NON_BLOCKING)
        return failure(MESSAGE(stream_flags), flags);
    return stream_open(connection, flags, priority, stream);
}

gpushare_error gpushare_stream_destroy(gpushare_stream *stream)
{
    if (!stream)
        return GPUSHARE_SUCCESS;
    if (stream == GPUSHARE_STREAM_PER_THREAD)
        return failure(MESSAGE(stream_of_thread));
    gpushare_error error = connection_check(stream->connection);
    return error ? error : stream_retire(stream);
}

gpushare_error gpushare_stream_priority(gpushare_connection *connection, gpushare_stream *stream,
                                        int32_t *priority)
{
    struct gpushare_stream *resolved;
    gpushare_error error = check_stream(connection, stream, &resolved);
    if (error)
        return error;
    if (!priority)
        return failure(MESSAGE(priority_pointer_null));
    *priority = resolved->priority;
    return GPUSHARE_SUCCESS;
}

gpushare_error gpushare_stream_synchronize(gpushare_connection *connection, gpushare_stream *stream)
{
    struct gpushare_stream *resolved;
    gpushare_error error = check_stream(connection, stream, &resolved);
    return error ? error : stream_wait_all(resolved);
}

gpushare_error gpushare_stream_query(gpushare_connection *connection, gpushare_stream *stream)
{
    struct gpushare_stream *resolved;
    gpushare_error error = check_stream(connection, stream, &resolved);
    return error ? error : stream_query(resolved);
}

gpushare_error gpushare_stream_recover(gpushare_connection *connection, gpushare_stream *stream,
                                       struct gpushare_recovery *recovery)
{
    struct gpushare_stream *resolved;
    struct gpushare_recovery found = {0};
    gpushare_error error = check_stream(connection, stream, &resolved);
    /* A report that could not be written must not be lost. */
    if (!error && recovery)
        error = abi_copy_out(recovery, &found, sizeof found, "recovery");
    if (error || (error = recovery_ask(resolved, &found)))
        return error;
    return recovery ? abi_copy_out(recovery, &found, sizeof found, "recovery") : GPUSHARE_SUCCESS;
}

gpushare_error gpushare_stream_wait_event(gpushare_connection *connection, gpushare_stream *stream,
                                          gpushare_event *event)
{
    struct gpushare_stream *resolved;
    gpushare_error error = check_stream(connection, stream, &resolved);
    if (error)
        return error;
    if (!event)
        return failure(MESSAGE(event_null));
    return event_hold_stream(event, resolved);
}

gpushare_error gpushare_synchronize(gpushare_connection *connection)
{
    gpushare_error error = connection_check(connection);
    return error ? error : stream_wait_connection(connection);
}
