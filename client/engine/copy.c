/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <string.h>

#include "client/engine/connection.h"
#include "client/session/failure.h"
#include "common/ring.h"

/* What every copy and fill is asked with. */
struct transfer {
    gpushare_connection *connection;
    struct gpushare_stream *stream;
    uint64_t destination, source, count;
};

static gpushare_error submit_copy(struct gpushare_stream *stream, uint64_t destination,
                                  uint64_t source, uint64_t count, uint64_t *value)
{
    union {
        struct ring_descriptor descriptor;
        struct proto_command_copy copy;
    } u = {.copy = {.opcode = PROTO_COMMAND_COPY,
                    .destination = destination,
                    .source = source,
                    .count = count}};
    return stream_submit(stream, &u.descriptor, value);
}

static uint64_t address_of(const struct staging_chunk *chunk)
{
    return (uint64_t)(uintptr_t)chunk->start;
}

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- ordinary memory ---- */

/* While the device reads one chunk, the processor fills the next. */
static gpushare_error stage_in(const struct transfer *t)
{
    for (uint64_t at = 0; at < t->count;) {
        struct staging_chunk *chunk;
        gpushare_error error = staging_take(t->connection, t->count - at, true, &chunk);
        if (error)
            return error;
        uint64_t piece = smaller(t->count - at, chunk->bytes);
        uint64_t value = 0;
        memcpy(chunk->start, pointer(t->source + at), piece);
        error = submit_copy(t->stream, t->destination + at, address_of(chunk), piece, &value);
        staging_give(t->connection, chunk, t->stream->index, error ? 0 : value);
        if (error)
            return error;
        at += piece;
    }
    return GPUSHARE_SUCCESS;
}

/* A chunk on its way out. */
struct outgoing {
    struct staging_chunk *chunk;
    uint64_t at, bytes, value;
};

enum { OUTGOING_MAX = 4 };

/* Sends one more chunk if there is one to have; blocks only if the caller holds none. */
static gpushare_error send_chunk(const struct transfer *t, uint64_t *sent, struct outgoing *queue,
                                 unsigned *held)
{
    struct staging_chunk *chunk;
    gpushare_error error = staging_take(t->connection, t->count - *sent, *held == 0, &chunk);
    if (error || !chunk)
        return error;
    struct outgoing *o = &queue[*held];
    *o = (struct outgoing){
        .chunk = chunk, .at = *sent, .bytes = smaller(t->count - *sent, chunk->bytes)};
    error = submit_copy(t->stream, address_of(chunk), t->source + *sent, o->bytes, &o->value);
    if (error) {
        staging_give(t->connection, chunk, t->stream->index, 0);
        return error;
    }
    *sent += o->bytes;
    ++*held;
    return GPUSHARE_SUCCESS;
}

/* Takes the oldest chunk's bytes when they have come. */
static gpushare_error take_chunk(const struct transfer *t, struct outgoing *queue, unsigned *held)
{
    struct outgoing o = queue[0];
    gpushare_error error = stream_wait_value(t->connection, t->stream->index, o.value);
    if (!error)
        memcpy(pointer(t->destination + o.at), o.chunk->start, o.bytes);
    staging_give(t->connection, o.chunk, t->stream->index, error ? o.value : 0);
    memmove(queue, queue + 1, (--*held) * sizeof *queue);
    return error;
}

static gpushare_error stage_out(const struct transfer *t)
{
    struct outgoing queue[OUTGOING_MAX];
    unsigned held = 0;
    uint64_t sent = 0;
    gpushare_error error = GPUSHARE_SUCCESS;
    while (!error && (sent < t->count || held)) {
        unsigned before = held;
        if (sent < t->count && held < OUTGOING_MAX)
            error = send_chunk(t, &sent, queue, &held);
        if (!error && held && (held == before || sent == t->count))
            error = take_chunk(t, queue, &held);
    }
    while (held)
        (void)take_chunk(t, queue, &held);
    /* The bytes are the caller's now; were they not copied, it must hear so now. */
    return error ? error : stream_settle(t->stream);
}

/* ---- any direction ---- */

static gpushare_error astray(const char *which, uint64_t address, uint64_t count)
{
    return failure(GPUSHARE_ERROR_INVALID_VALUE,
                   "%s: %llu bytes from 0x%llx are not in one allocation of this client", which,
                   (unsigned long long)count, (unsigned long long)address);
}

static gpushare_error host_to_host(const struct transfer *t)
{
    gpushare_error error = stream_wait_all(t->stream);
    if (!error)
        memcpy(pointer(t->destination), pointer(t->source), t->count);
    return error;
}

/* Pushes the copy; for ordinary memory does what the public header says. */
static gpushare_error start(const struct transfer *t)
{
    enum memory_kind to = memory_classify(t->connection, t->destination, t->count);
    enum memory_kind from = memory_classify(t->connection, t->source, t->count);
    if (to == MEMORY_ASTRAY)
        return astray("destination", t->destination, t->count);
    if (from == MEMORY_ASTRAY)
        return astray("source", t->source, t->count);
    if (t->destination - t->source < t->count || t->source - t->destination < t->count)
        return failure(GPUSHARE_ERROR_INVALID_VALUE, "source and destination overlap");
    if (to != MEMORY_DEVICE && from != MEMORY_DEVICE &&
        (to == MEMORY_ORDINARY || from == MEMORY_ORDINARY))
        return host_to_host(t);
    if (from == MEMORY_ORDINARY)
        return stage_in(t);
    if (to == MEMORY_ORDINARY)
        return stage_out(t);
    return submit_copy(t->stream, t->destination, t->source, t->count, NULL);
}

static gpushare_error copy(gpushare_connection *connection, uint64_t destination, uint64_t source,
                           uint64_t count, gpushare_stream *handle, bool wait)
{
    struct transfer t = {
        .connection = connection, .destination = destination, .source = source, .count = count};
    gpushare_error error = stream_resolve(connection, handle, &t.stream);
    if (error)
        return error;
    if (count) {
        if (!destination || !source)
            return failure(GPUSHARE_ERROR_INVALID_VALUE, "%s is NULL",
                           destination ? "source" : "destination");
        if ((error = start(&t)))
            return error;
    }
    return wait ? stream_wait_pushed(t.stream) : GPUSHARE_SUCCESS;
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
        return failure(GPUSHARE_ERROR_INVALID_VALUE,
                       "%s: %llu bytes from 0x%llx are not device memory of this client",
                       device_side, (unsigned long long)count, (unsigned long long)device);
    if (memory_classify(connection, host, count) == MEMORY_DEVICE)
        return failure(GPUSHARE_ERROR_INVALID_VALUE,
                       "%s: 0x%llx is device memory, where host memory belongs; gpushare_copy() "
                       "finds the direction itself",
                       host_side, (unsigned long long)host);
    return GPUSHARE_SUCCESS;
}

static gpushare_error to_device(gpushare_connection *connection, uint64_t destination,
                                const void *source, uint64_t count, gpushare_stream *stream,
                                bool wait)
{
    uint64_t from = (uint64_t)(uintptr_t)source;
    gpushare_error error =
        check_sides(connection, destination, "destination", from, "source", count);
    return error ? error : copy(connection, destination, from, count, stream, wait);
}

static gpushare_error from_device(gpushare_connection *connection, void *destination,
                                  uint64_t source, uint64_t count, gpushare_stream *stream,
                                  bool wait)
{
    uint64_t to = (uint64_t)(uintptr_t)destination;
    gpushare_error error = check_sides(connection, source, "source", to, "destination", count);
    return error ? error : copy(connection, to, source, count, stream, wait);
}

gpushare_error gpushare_copy_to_device(gpushare_connection *connection,
                                       gpushare_address destination, const void *source,
                                       uint64_t count)
{
    return to_device(connection, destination, source, count, NULL, true);
}

gpushare_error gpushare_copy_to_device_async(gpushare_connection *connection,
                                             gpushare_address destination, const void *source,
                                             uint64_t count, gpushare_stream *stream)
{
    return to_device(connection, destination, source, count, stream, false);
}

gpushare_error gpushare_copy_from_device(gpushare_connection *connection, void *destination,
                                         gpushare_address source, uint64_t count)
{
    return from_device(connection, destination, source, count, NULL, true);
}

gpushare_error gpushare_copy_from_device_async(gpushare_connection *connection, void *destination,
                                               gpushare_address source, uint64_t count,
                                               gpushare_stream *stream)
{
    return from_device(connection, destination, source, count, stream, false);
}

gpushare_error gpushare_copy(gpushare_connection *connection, gpushare_address destination,
                             gpushare_address source, uint64_t count)
{
    gpushare_error error = connection_check(connection);
    return error ? error : copy(connection, destination, source, count, NULL, true);
}

gpushare_error gpushare_copy_async(gpushare_connection *connection, gpushare_address destination,
                                   gpushare_address source, uint64_t count, gpushare_stream *stream)
{
    gpushare_error error = connection_check(connection);
    return error ? error : copy(connection, destination, source, count, stream, false);
}

/* ---- between connections ---- */

static gpushare_error copy_peer(gpushare_connection *destination_connection, uint64_t destination,
                                gpushare_connection *source_connection, uint64_t source,
                                uint64_t count, gpushare_connection *stream_connection,
                                gpushare_stream *handle, bool wait)
{
    struct gpushare_stream *stream;
    gpushare_error error;
    if ((error = connection_check(destination_connection)) ||
        (error = connection_check(source_connection)))
        return error;
    if (stream_connection != destination_connection && stream_connection != source_connection)
        return failure(GPUSHARE_ERROR_INVALID_VALUE,
                       "the stream's connection must be one of the two that are copied between");
    if ((error = stream_resolve(stream_connection, handle, &stream)))
        return error;
    /* In order with both default streams: the destination's is the one it goes through. */
    if (wait && (error = stream_wait_all(source_connection->default_stream)))
        return error;
    if (count) {
        if (memory_classify(destination_connection, destination, count) != MEMORY_DEVICE)
            return astray("destination", destination, count);
        if (memory_classify(source_connection, source, count) != MEMORY_DEVICE)
            return astray("source", source, count);
        error = destination_connection == source_connection
                    ? copy(stream_connection, destination, source, count, handle, false)
                    : peer_copy(destination_connection, destination, source_connection, source,
                                count, stream);
    }
    return error || !wait ? error : stream_wait_pushed(stream);
}

gpushare_error gpushare_copy_peer(gpushare_connection *destination_connection,
                                  gpushare_address destination,
                                  gpushare_connection *source_connection, gpushare_address source,
                                  uint64_t count)
{
    return copy_peer(destination_connection, destination, source_connection, source, count,
                     destination_connection, NULL, true);
}

gpushare_error gpushare_copy_peer_async(gpushare_connection *destination_connection,
                                        gpushare_address destination,
                                        gpushare_connection *source_connection,
                                        gpushare_address source, uint64_t count,
                                        gpushare_connection *stream_connection,
                                        gpushare_stream *stream)
{
    return copy_peer(destination_connection, destination, source_connection, source, count,
                     stream_connection, stream, false);
}

/* ---- fills ---- */

static gpushare_error fill(gpushare_connection *connection, uint64_t destination, uint32_t value,
                           uint32_t width, uint64_t count, gpushare_stream *handle, bool wait)
{
    struct gpushare_stream *stream;
    uint64_t bytes;
    gpushare_error error = connection_check(connection);
    if (error || (error = stream_resolve(connection, handle, &stream)))
        return error;
    if (width != 1 && width != 2 && width != 4)
        return failure(GPUSHARE_ERROR_INVALID_VALUE, "width is %u; it must be 1, 2 or 4", width);
    if (destination % width)
        return failure(GPUSHARE_ERROR_INVALID_VALUE, "destination 0x%llx is not a multiple of %u",
                       (unsigned long long)destination, width);
    if (count) {
        if (__builtin_mul_overflow(count, (uint64_t)width, &bytes))
            return failure(GPUSHARE_ERROR_INVALID_VALUE, "count is too large");
        if (memory_classify(connection, destination, bytes) != MEMORY_DEVICE)
            return failure(GPUSHARE_ERROR_INVALID_VALUE,
                           "%llu bytes from 0x%llx are not device memory of this client",
                           (unsigned long long)bytes, (unsigned long long)destination);
        union {
            struct ring_descriptor descriptor;
            struct proto_command_fill fill;
        } u = {.fill = {.opcode = PROTO_COMMAND_FILL,
                        .value = value,
                        .destination = destination,
                        .count = count,
                        .width = width}};
        if ((error = stream_submit(stream, &u.descriptor, NULL)))
            return error;
    }
    return wait ? stream_wait_pushed(stream) : GPUSHARE_SUCCESS;
}

gpushare_error gpushare_fill(gpushare_connection *connection, gpushare_address destination,
                             uint32_t value, uint32_t width, uint64_t count)
{
    return fill(connection, destination, value, width, count, NULL, true);
}

gpushare_error gpushare_fill_async(gpushare_connection *connection, gpushare_address destination,
                                   uint32_t value, uint32_t width, uint64_t count,
                                   gpushare_stream *stream)
{
    return fill(connection, destination, value, width, count, stream, false);
}
