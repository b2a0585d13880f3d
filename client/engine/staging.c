/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/staging.h"

#include <string.h>

#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"
#include "common/util.h"

enum {
    /* Four chunks of 4 MiB: the device moves one in some 200 us (at 20 GB/s) while the processor
     * copies the next. Beside that, the waits between chunks cost next to nothing. */
    LARGE_CHUNK = 4 << 20,
    LARGE_CHUNKS = 4,
    /* There are many small copies, and each keeps a chunk until it is done. */
    SMALL_CHUNK = 64 << 10,
    SMALL_CHUNKS = 32,
    SMALL_SLAB = SMALL_CHUNK * SMALL_CHUNKS,
    /* A smaller buffer is not worth the request to the server. */
    SLAB_MIN = 64 << 10,
};

_Static_assert((int)SMALL_CHUNKS <= (int)STAGING_CHUNKS_MAX, "room in the small pool");
_Static_assert((int)LARGE_CHUNKS <= (int)STAGING_CHUNKS_MAX, "room in the large pool");

void staging_init(struct staging *staging)
{
    memset(staging, 0, sizeof *staging);
    pthread_mutex_init(&staging->lock, NULL);
    pthread_cond_init(&staging->given, NULL);
    staging->small.slab_bytes = SMALL_SLAB;
    staging->small.chunk_bytes = SMALL_CHUNK;
    staging->small.chunks_max = SMALL_CHUNKS;
    staging->large.slab_bytes = LARGE_CHUNK;
    staging->large.chunk_bytes = LARGE_CHUNK;
    staging->large.chunks_max = LARGE_CHUNKS;
}

void staging_destroy(struct staging *staging)
{
    pthread_cond_destroy(&staging->given);
    pthread_mutex_destroy(&staging->lock);
}

static bool chunk_is_done(const gpushare_connection *connection, const struct staging_chunk *chunk)
{
    return !chunk->value || stream_has_reached(connection, chunk->stream, chunk->value);
}

static void cut_slab(struct staging_pool *pool, uint8_t *slab, uint64_t bytes)
{
    uint64_t piece = min(pool->chunk_bytes, bytes);
    for (uint64_t at = 0; at + piece <= bytes && pool->count < pool->chunks_max; at += piece)
        pool->chunks[pool->count++] = (struct staging_chunk){.start = slab + at, .bytes = piece};
}

/*
 * Adds a buffer to the pool, halved until the limit has room for it. Called with the lock,
 * which is released while the server is asked. OUT_OF_MEMORY if there is no room.
 */
static gpushare_error grow_pool(gpushare_connection *connection, struct staging_pool *pool)
{
    struct staging *staging = &connection->staging;
    staging->growing = true;
    gpushare_error error;
    void *slab = NULL;
    uint64_t bytes = pool->slab_bytes;
    pthread_mutex_unlock(&staging->lock);
    while ((error = memory_buffer_alloc(connection, bytes, &slab)) ==
               GPUSHARE_ERROR_OUT_OF_MEMORY &&
           bytes / 2 >= SLAB_MIN)
        bytes /= 2;
    pthread_mutex_lock(&staging->lock);
    staging->growing = false;
    pthread_cond_broadcast(&staging->given);
    if (!error)
        cut_slab(pool, slab, bytes);
    /* A buffer that had to be smaller, or was refused, shows that the limit is reached. */
    if (error == GPUSHARE_ERROR_OUT_OF_MEMORY || (!error && bytes < pool->slab_bytes))
        pool->full = true;
    return error;
}

/* A chunk that is not busy, if possible one whose last copy is done; NULL if all are busy. */
static struct staging_chunk *find_chunk(const gpushare_connection *connection,
                                        struct staging_pool *pool)
{
    struct staging_chunk *pending = NULL;
    for (uint32_t i = 0; i < pool->count; i++) {
        struct staging_chunk *chunk = &pool->chunks[i];
        if (chunk->busy)
            continue;
        if (chunk_is_done(connection, chunk))
            return chunk;
        /* Values of different streams don't compare; of one stream, the lowest is done first. */
        if (!pending || (chunk->stream == pending->stream && chunk->value < pending->value))
            pending = chunk;
    }
    return pending;
}

static gpushare_error fail_no_room(gpushare_error error)
{
    return failure_prefix(error, MESSAGE_TEXT(copy_no_staging));
}

/* Marks a chunk of the pool busy and returns it; its last copy may still run. Called with the lock.
 * *out is NULL where all are busy and wait is false. */
static gpushare_error choose_chunk(gpushare_connection *connection, struct staging_pool *pool,
                                   bool wait, struct staging_chunk **out)
{
    struct staging *staging = &connection->staging;
    for (;;) {
        struct staging_chunk *chunk = find_chunk(connection, pool);
        bool ready = chunk && chunk_is_done(connection, chunk);
        if (!ready && !pool->full && pool->count < pool->chunks_max && !staging->growing) {
            gpushare_error error = grow_pool(connection, pool);
            if (error && error != GPUSHARE_ERROR_OUT_OF_MEMORY)
                return error;
            if (error && !pool->count)
                return error;
            continue;
        }
        if (chunk && (ready || wait)) {
            chunk->busy = true;
            *out = chunk;
            return GPUSHARE_SUCCESS;
        }
        if (!wait) {
            *out = NULL;
            return GPUSHARE_SUCCESS;
        }
        if (pool->full && !pool->count)
            return failure(MESSAGE(staging_none));
        pthread_cond_wait(&staging->given, &staging->lock);
    }
}

gpushare_error staging_take(gpushare_connection *connection, uint64_t count, bool wait,
                            struct staging_chunk **out)
{
    struct staging *staging = &connection->staging;
    struct staging_chunk *chunk = NULL;
    struct staging_pool *pool = count <= SMALL_CHUNK ? &staging->small : &staging->large;
    struct staging_pool *other = count <= SMALL_CHUNK ? &staging->large : &staging->small;
    pthread_mutex_lock(&staging->lock);
    /* If the limit has room for one pool only, that pool serves all copies. */
    if (pool->full && !pool->count && other->count)
        pool = other;
    gpushare_error error = choose_chunk(connection, pool, wait, &chunk);
    if (error == GPUSHARE_ERROR_OUT_OF_MEMORY && other->count)
        error = choose_chunk(connection, other, wait, &chunk);
    /* The program may free memory meanwhile: the next call asks the server again. */
    if (error == GPUSHARE_ERROR_OUT_OF_MEMORY)
        pool->full = false;
    pthread_mutex_unlock(&staging->lock);
    if (error)
        return error == GPUSHARE_ERROR_OUT_OF_MEMORY ? fail_no_room(error) : error;
    if (chunk && !chunk_is_done(connection, chunk) &&
        (error = stream_await_value(connection, chunk->stream, chunk->value))) {
        staging_give(connection, chunk, chunk->stream, chunk->value);
        return error;
    }
    *out = chunk;
    return GPUSHARE_SUCCESS;
}

void staging_give(gpushare_connection *connection, struct staging_chunk *chunk, uint32_t stream,
                  uint64_t value)
{
    struct staging *staging = &connection->staging;
    pthread_mutex_lock(&staging->lock);
    chunk->stream = stream;
    chunk->value = value;
    chunk->busy = false;
    pthread_cond_signal(&staging->given);
    pthread_mutex_unlock(&staging->lock);
}

static bool pool_owns(const struct staging_pool *pool, uint64_t address)
{
    for (uint32_t i = 0; i < pool->count; i++)
        if (address - (uint64_t)(uintptr_t)pool->chunks[i].start < pool->chunks[i].bytes)
            return true;
    return false;
}

bool staging_owns(gpushare_connection *connection, uint64_t address)
{
    struct staging *staging = &connection->staging;
    pthread_mutex_lock(&staging->lock);
    bool owns = pool_owns(&staging->small, address) || pool_owns(&staging->large, address);
    pthread_mutex_unlock(&staging->lock);
    return owns;
}
