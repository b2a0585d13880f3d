/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * staging: shared host buffers of the library, through which copies of ordinary memory go. There
 * are two pools. One has many small chunks, so that small copies don't wait for each other. The
 * other has a few large chunks, so that the processor fills one while the device reads another.
 *
 * Buffers are allocated when they are first needed. They are smaller if the client's limit of
 * pinned memory has less room. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_STAGING_H
#define GPUSHARE_CLIENT_ENGINE_STAGING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"

enum { STAGING_CHUNKS_MAX = 32 };

/* A piece of a buffer. It is busy while a caller fills or drains it, and then in flight until
 * its stream reaches a value. */
struct staging_chunk {
    uint8_t *start;
    uint64_t bytes;
    bool busy;
    uint32_t stream; /* the last copy from or to it: stream and timeline value */
    uint64_t value;  /* 0: none yet */
};

struct staging_pool {
    uint64_t slab_bytes;  /* bytes of one buffer */
    uint64_t chunk_bytes; /* bytes of the pieces into which a buffer is cut */
    uint32_t chunks_max;
    uint32_t count;
    bool full; /* the client's limit allows no further buffer */
    struct staging_chunk chunks[STAGING_CHUNKS_MAX];
};

struct staging {
    pthread_mutex_t lock; /* guards the pools */
    pthread_cond_t given; /* signalled when a chunk is no longer busy */
    bool growing;         /* a thread is asking the server for a buffer */
    struct staging_pool small, large;
};

void staging_init(struct staging *staging);
void staging_destroy(struct staging *staging);

/*
 * Takes a chunk for a copy of count bytes. The chunk may hold fewer bytes; its last copy is done.
 * wait: whether to wait for a chunk if all are busy. A caller that holds a chunk must not wait,
 * because two such callers would wait for each other; without `wait`, *chunk is NULL if all are
 * busy. Returns OUT_OF_MEMORY if the limit of pinned memory has no room for a buffer.
 */
gpushare_error staging_take(gpushare_connection *connection, uint64_t count, bool wait,
                            struct staging_chunk **chunk);

/* Whether an address lies in one of the buffers. */
bool staging_owns(gpushare_connection *connection, uint64_t address);

/* Gives a chunk back. It is used again when the stream's timeline reaches value; 0 means at
 * once. */
void staging_give(gpushare_connection *connection, struct staging_chunk *chunk, uint32_t stream,
                  uint64_t value);

#endif
