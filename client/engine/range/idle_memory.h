/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * idle_memory: device memory that the program has freed, kept for its next allocations. So these
 * ask no server, and nothing is cleared: the bytes are the same client's own.
 *
 * The address of each idle block stands in a word of the client's header (client_header.idle).
 * One side sets that word from the address to 0, and has the block: this process to use it again,
 * or the server to give it to somebody else. So the server needs no answer of the client, which may
 * sleep. A block that the server has taken is noticed at the next look.
 *
 * A block is used again only when all work is done that was issued before it was freed. Any
 * thread. The lock is taken last.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_RANGE_IDLE_MEMORY_H
#define GPUSHARE_CLIENT_ENGINE_RANGE_IDLE_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

struct allocation;

/* Streams with work at the moment when a block is freed. A block with more is not kept. */
enum { IDLE_STREAMS_MAX = 4 };

/* The timeline values that must have been reached, and the words that say how far each is. */
struct idle_work {
    uint32_t streams;
    struct {
        const uint64_t *completed;
        uint64_t value;
    } of[IDLE_STREAMS_MAX];
};

struct idle_block {
    uint64_t address; /* 0: there is none */
    uint64_t bytes;
    uint64_t turn; /* the one that was freed first has the smallest */
    struct idle_work work;
};

struct idle_memory {
    _Atomic(uint64_t *) words; /* client_header.idle; NULL: nothing is kept */
    pthread_mutex_t lock;
    uint64_t most, bytes; /* bytes that may be kept, and that are */
    uint64_t turns;
    uint32_t top; /* no block is at this index, or above */
    struct idle_block blocks[PROTO_IDLE_BLOCKS];
};

void idle_memory_init(struct idle_memory *idle);

/* here: false in a forked child, as in allocation_destroy. */
void idle_memory_destroy(struct idle_memory *idle, bool here);

/* Blocks of `most` bytes in all may be kept from now on. words: of the header, which stays as long
 * as the struct. */
void idle_memory_begin(struct idle_memory *idle, uint64_t *words, uint64_t most);

/* Whether a block of this size may be kept at all. */
bool idle_memory_may_keep(const struct idle_memory *idle, uint64_t bytes);

/* Keeps a block that the program has freed, and that is not among the allocations any more. work:
 * what was issued until then and is not done. Returns false if there is no room, until those of
 * idle_memory_oldest have given way. */
bool idle_memory_keep(struct idle_memory *idle, const struct allocation *freed,
                      const struct idle_work *work);

/* Takes an idle block that fits, for `count` bytes. Returns false, and writes nothing, if there is
 * none. */
bool idle_memory_take(struct idle_memory *idle, uint64_t count, struct allocation *taken);

/* Takes the block that is idle for the longest time, whether its work is done or not: it goes back
 * to the server. Returns false if there is none. */
bool idle_memory_oldest(struct idle_memory *idle, uint64_t *address);

#endif
