/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Copies and fills. */
#include <stdbool.h>

#include "client/engine/connection.h"
#include "client/engine/copy.h"
#include "client/engine/memory.h"
#include "client/engine/stream.h"
#include "client/engine/thread_stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

/* Copies in any direction. The connection has been checked. */
static gpushare_error copy_range(gpushare_connection *connection, uint64_t destination,
                                 uint64_t source, uint64_t count, gpushare_stream *handle,
                                 bool wait)
{
    struct gpushare_stream *stream;
    gpushare_error error = thread_stream_resolve(connection, handle, &stream);
    if (error)
        return error;
    if (count) {
        if (!destination || !source)
            return destination ? failure(MESSAGE(source_null)) : failure(MESSAGE(pointer_null));
        if ((error = copy_submit(stream, destination, source, count)))
            return error;
    }
    return wait ? stream_wait_pushed(stream) : GPUSHARE_SUCCESS;
}

/* One side must be device memory, the other must not. */
static gpushare_error check_sides(gpushare_connection *connection, uint64_t device,
                                  const char *device_side, uint64_t host, const char *host_side,
                                  uint64_t count)
{
    gpushare_error error = connection_check(connection);
    if (error || !count)
        return error;
    if (memory_classify(connection, device, count) != MEMORY_DEVICE)
        return failure(MESSAGE(copy_not_device_memory), device_side, (unsigned long long)count,
                       (unsigned long long)device);
    if (memory_classify(connection, host, count) == MEMORY_DEVICE)
        return failure(MESSAGE(copy_not_host_memory), host_side, (unsigned long long)host);
    return GPUSHARE_SUCCESS;
}

static gpushare_error copy_to_device(gpushare_connection *connection, uint64_t destination,
                                     const void *source, uint64_t count, gpushare_stream *stream,
                                     bool wait)
{
    uint64_t from = (uint64_t)(uintptr_t)source;
    gpushare_error error =
        check_sides(connection, destination, "destination", from, "source", count);
    return error ? error : copy_range(connection, destination, from, count, stream, wait);
}

static gpushare_error copy_from_device(gpushare_connection *connection, void *destination,
                                       uint64_t source, uint64_t count, gpushare_stream *stream,
                                       bool wait)
{
    uint64_t to = (uint64_t)(uintptr_t)destination;
    gpushare_error error = check_sides(connection, source, "source", to, "destination", count);
    return error ? error : copy_range(connection, to, source, count, stream, wait);
}

gpushare_error gpushare_copy_to_device(gpushare_connection *connection,
                                       gpushare_address destination, const void *source,
                                       uint64_t count)
{
    return copy_to_device(connection, destination, source, count, NULL, true);
}

gpushare_error gpushare_copy_to_device_async(gpushare_connection *connection,
                                             gpushare_address destination, const void *source,
                                             uint64_t count, gpushare_stream *stream)
{
    return copy_to_device(connection, destination, source, count, stream, false);
}

gpushare_error gpushare_copy_from_device(gpushare_connection *connection, void *destination,
                                         gpushare_address source, uint64_t count)
{
    return copy_from_device(connection, destination, source, count, NULL, true);
}

gpushare_error gpushare_copy_from_device_async(gpushare_connection *connection, void *destination,
                                               gpushare_address source, uint64_t count,
                                               gpushare_stream *stream)
{
    return copy_from_device(connection, destination, source, count, stream, false);
}

gpushare_error gpushare_copy(gpushare_connection *connection, gpushare_address destination,
                             gpushare_address source, uint64_t count)
{
    gpushare_error error = connection_check(connection);
    return error ? error : copy_range(connection, destination, source, count, NULL, true);
}

gpushare_error gpushare_copy_async(gpushare_connection *connection, gpushare_address destination,
                                   gpushare_address source, uint64_t count, gpushare_stream *stream)
{
    gpushare_error error = connection_check(connection);
    return error ? error : copy_range(connection, destination, source, count, stream, false);
}

/* ---- between connections ---- */

static gpushare_error check_peers(gpushare_connection *destination, gpushare_connection *source,
                                  const gpushare_connection *stream_connection)
{
    gpushare_error error = connection_check(destination);
    if (error || (error = connection_check(source)))
        return error;
    if (stream_connection != destination && stream_connection != source)
        return failure(MESSAGE(copy_stream_connection));
    return GPUSHARE_SUCCESS;
}

gpushare_error gpushare_copy_peer(gpushare_connection *destination_connection,
                                  gpushare_address destination,
                                  gpushare_connection *source_connection, gpushare_address source,
                                  uint64_t count)
{
    gpushare_error error =
        check_peers(destination_connection, source_connection, destination_connection);
    if (error)
        return error;
    /* The copy goes through the destination's default stream, and is in order with that of the
     * source too. */
    struct gpushare_stream *stream = destination_connection->default_stream;
    if ((error = stream_wait_all(source_connection->default_stream)))
        return error;
    if (count && (error = copy_submit_peer(stream, destination_connection, destination,
                                           source_connection, source, count)))
        return error;
    return stream_wait_pushed(stream);
}

gpushare_error gpushare_copy_peer_async(gpushare_connection *destination_connection,
                                        gpushare_address destination,
                                        gpushare_connection *source_connection,
                                        gpushare_address source, uint64_t count,
                                        gpushare_connection *stream_connection,
                                        gpushare_stream *stream)
{
    struct gpushare_stream *resolved;
    gpushare_error error =
        check_peers(destination_connection, source_connection, stream_connection);
    if (error || (error = thread_stream_resolve(stream_connection, stream, &resolved)) || !count)
        return error;
    return copy_submit_peer(resolved, destination_connection, destination, source_connection,
                            source, count);
}

/* ---- fills ---- */

static gpushare_error check_fill(gpushare_connection *connection, uint64_t destination,
                                 uint32_t width, uint64_t count)
{
    uint64_t bytes;
    if (width != 1 && width != 2 && width != 4)
        return failure(MESSAGE(fill_width), width);
    if (destination % width)
        return failure(MESSAGE(fill_alignment), (unsigned long long)destination, width);
    if (!count)
        return GPUSHARE_SUCCESS;
    if (__builtin_mul_overflow(count, (uint64_t)width, &bytes))
        return failure(MESSAGE(fill_count));
    if (memory_classify(connection, destination, bytes) != MEMORY_DEVICE)
        return failure(MESSAGE(fill_not_device_memory), (unsigned long long)bytes,
                       (unsigned long long)destination);
    return GPUSHARE_SUCCESS;
}

static gpushare_error fill_range(gpushare_connection *connection, uint64_t destination,
                                 uint32_t value, uint32_t width, uint64_t count,
                                 gpushare_stream *handle, bool wait)
{
    struct gpushare_stream *stream;
    gpushare_error error = connection_check(connection);
    if (error || (error = thread_stream_resolve(connection, handle, &stream)) ||
        (error = check_fill(connection, destination, width, count)))
        return error;
    if (count && (error = copy_fill(stream, destination, value, width, count)))
        return error;
    return wait ? stream_wait_pushed(stream) : GPUSHARE_SUCCESS;
}

gpushare_error gpushare_fill(gpushare_connection *connection, gpushare_address destination,
                             uint32_t value, uint32_t width, uint64_t count)
{
    return fill_range(connection, destination, value, width, count, NULL, true);
}

gpushare_error gpushare_fill_async(gpushare_connection *connection, gpushare_address destination,
                                   uint32_t value, uint32_t width, uint64_t count,
                                   gpushare_stream *stream)
{
    return fill_range(connection, destination, value, width, count, stream, false);
}
