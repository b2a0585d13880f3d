/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/copy.h"

#include <string.h>

#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "client/engine/module.h"
#include "client/engine/peer.h"
#include "client/engine/slice.h"
#include "client/engine/staging.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"
#include "common/util.h"

/* The arguments of a copy. */
struct transfer {
    gpushare_connection *connection;
    struct gpushare_stream *stream;
    uint64_t destination, source, count;
};

/* *value: the stream's timeline value behind the copy; NULL where nobody asks. */
static gpushare_error submit_copy(struct gpushare_stream *stream, uint64_t destination,
                                  uint64_t source, uint64_t count, uint64_t *value)
{
    gpushare_error error = stream_begin(stream);
    if (error)
        return error;
    error = slice_push_copy(stream, destination, source, count);
    if (value)
        *value = stream->producer.value;
    stream_end(stream);
    return error;
}

static uint64_t chunk_address(const struct staging_chunk *chunk)
{
    return (uint64_t)(uintptr_t)chunk->start;
}

static void *address_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
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
        uint64_t piece = min(t->count - at, chunk->bytes);
        uint64_t value = 0;
        memcpy(chunk->start, address_pointer(t->source + at), piece);
        error = submit_copy(t->stream, t->destination + at, chunk_address(chunk), piece, &value);
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

/* Sends one more chunk if there is a free one. Waits for one only if none is on its way: two copies
 * that had chunks and waited for more would wait for each other. */
static gpushare_error send_chunk(const struct transfer *t, uint64_t *sent, struct outgoing *queue,
                                 unsigned *outgoing)
{
    struct staging_chunk *chunk;
    gpushare_error error = staging_take(t->connection, t->count - *sent, *outgoing == 0, &chunk);
    if (error || !chunk)
        return error;
    struct outgoing *o = &queue[*outgoing];
    uint64_t bytes = min(t->count - *sent, chunk->bytes);
    *o = (struct outgoing){.chunk = chunk, .at = *sent, .bytes = bytes};
    error = submit_copy(t->stream, chunk_address(chunk), t->source + *sent, o->bytes, &o->value);
    if (error) {
        staging_give(t->connection, chunk, t->stream->index, 0);
        return error;
    }
    *sent += o->bytes;
    ++*outgoing;
    return GPUSHARE_SUCCESS;
}

/* Waits for the oldest chunk's bytes and copies them to their destination. */
static gpushare_error take_chunk(const struct transfer *t, struct outgoing *queue,
                                 unsigned *outgoing)
{
    struct outgoing o = queue[0];
    gpushare_error error = stream_wait_value(t->connection, t->stream->index, o.value);
    if (!error)
        memcpy(address_pointer(t->destination + o.at), o.chunk->start, o.bytes);
    staging_give(t->connection, o.chunk, t->stream->index, error ? o.value : 0);
    memmove(queue, queue + 1, (--*outgoing) * sizeof *queue);
    return error;
}

static gpushare_error stage_out(const struct transfer *t)
{
    struct outgoing queue[OUTGOING_MAX];
    unsigned outgoing = 0;
    uint64_t sent = 0;
    gpushare_error error = GPUSHARE_SUCCESS;
    while (!error && (sent < t->count || outgoing)) {
        unsigned before = outgoing;
        if (sent < t->count && outgoing < OUTGOING_MAX)
            error = send_chunk(t, &sent, queue, &outgoing);
        if (!error && outgoing && (outgoing == before || sent == t->count))
            error = take_chunk(t, queue, &outgoing);
    }
    while (outgoing)
        (void)take_chunk(t, queue, &outgoing);
    /* The caller reads the bytes next: an error of this copy must be returned by this call. */
    return error ? error : stream_check(t->stream);
}

/* ---- any direction ---- */

static gpushare_error fail_astray(const char *which, uint64_t address, uint64_t count)
{
    return failure(MESSAGE(copy_not_one_allocation), which, (unsigned long long)count,
                   (unsigned long long)address);
}

static gpushare_error host_to_host(const struct transfer *t)
{
    gpushare_error error = stream_wait_all(t->stream);
    if (!error)
        memcpy(address_pointer(t->destination), address_pointer(t->source), t->count);
    return error;
}

/* The driver's memory of a module that was lost is not the module's any more. */
static gpushare_error check_lost(gpushare_connection *connection, uint64_t destination,
                                 uint64_t source)
{
    gpushare_error error = module_check_variable(connection, destination);
    return error ? error : module_check_variable(connection, source);
}

gpushare_error copy_submit(struct gpushare_stream *stream, uint64_t destination, uint64_t source,
                           uint64_t count)
{
    struct transfer t = {.connection = stream->connection,
                         .stream = stream,
                         .destination = destination,
                         .source = source,
                         .count = count};
    gpushare_error lost = check_lost(t.connection, destination, source);
    if (lost)
        return lost;
    enum memory_kind to = memory_classify(t.connection, destination, count);
    enum memory_kind from = memory_classify(t.connection, source, count);
    if (to == MEMORY_ASTRAY)
        return fail_astray("destination", destination, count);
    if (from == MEMORY_ASTRAY)
        return fail_astray("source", source, count);
    if (destination - source < count || source - destination < count)
        return failure(MESSAGE(copy_overlap));
    if (to != MEMORY_DEVICE && from != MEMORY_DEVICE &&
        (to == MEMORY_ORDINARY || from == MEMORY_ORDINARY))
        return host_to_host(&t);
    if (from == MEMORY_ORDINARY)
        return stage_in(&t);
    if (to == MEMORY_ORDINARY)
        return stage_out(&t);
    return submit_copy(stream, destination, source, count, NULL);
}

/* The program may have freed the source, so it is not looked for among allocations. */
gpushare_error copy_submit_held(struct gpushare_stream *stream, uint64_t destination,
                                uint64_t source, uint64_t count, uint64_t *value)
{
    gpushare_error lost = check_lost(stream->connection, destination, source);
    return lost ? lost : submit_copy(stream, destination, source, count, value);
}

gpushare_error copy_submit_peer(struct gpushare_stream *stream,
                                gpushare_connection *destination_connection, uint64_t destination,
                                gpushare_connection *source_connection, uint64_t source,
                                uint64_t count)
{
    if (memory_classify(destination_connection, destination, count) != MEMORY_DEVICE)
        return fail_astray("destination", destination, count);
    if (memory_classify(source_connection, source, count) != MEMORY_DEVICE)
        return fail_astray("source", source, count);
    if (destination_connection == source_connection)
        return copy_submit(stream, destination, source, count);
    gpushare_error error = module_check_variable(destination_connection, destination);
    if (error || (error = module_check_variable(source_connection, source)))
        return error;
    return peer_copy(destination_connection, destination, source_connection, source, count, stream);
}

gpushare_error copy_fill(struct gpushare_stream *stream, uint64_t destination, uint32_t value,
                         uint32_t width, uint64_t count)
{
    gpushare_error error = module_check_variable(stream->connection, destination);
    if (error || (error = stream_begin(stream)))
        return error;
    error = slice_push_fill(stream, destination, value, width, count);
    stream_end(stream);
    return error;
}
