/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Events. */
#include "client/engine/connection.h"
#include "client/engine/event.h"
#include "client/engine/thread_stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

static gpushare_error check_event(gpushare_event *event)
{
    if (!event)
        return failure(MESSAGE(event_null));
    return connection_check(event->connection);
}

gpushare_error gpushare_event_create(gpushare_connection *connection, uint32_t flags,
                                     gpushare_event **event)
{
    gpushare_error error = connection_check(connection);
    if (error)
        return error;
    if (!event)
        return failure(MESSAGE(event_pointer_null));
    if (flags & ~GPUSHARE_EVENT_TIMING)
        return failure(MESSAGE(event_flags), flags);
    return event_open(connection, flags, event);
}

gpushare_error gpushare_event_destroy(gpushare_event *event)
{
    if (!event)
        return GPUSHARE_SUCCESS;
    gpushare_error error = connection_check(event->connection);
    return error ? error : event_close(event);
}

gpushare_error gpushare_event_record(gpushare_event *event, gpushare_stream *stream)
{
    struct gpushare_stream *resolved;
    gpushare_error error = check_event(event);
    if (error || (error = thread_stream_resolve(event->connection, stream, &resolved)))
        return error;
    return event_record(event, resolved);
}

gpushare_error gpushare_event_query(gpushare_event *event)
{
    gpushare_error error = check_event(event);
    return error ? error : event_query(event);
}

gpushare_error gpushare_event_synchronize(gpushare_event *event)
{
    gpushare_error error = check_event(event);
    return error ? error : event_wait(event);
}

gpushare_error gpushare_event_elapsed(gpushare_event *start, gpushare_event *end,
                                      double *milliseconds)
{
    gpushare_error error = check_event(start);
    if (error || (error = check_event(end)))
        return error;
    if (!milliseconds)
        return failure(MESSAGE(milliseconds_pointer_null));
    return event_elapsed(start, end, milliseconds);
}
