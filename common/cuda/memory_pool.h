/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory_pool: CUDA's stream-ordered allocation over calls that allocate and free at once. A freed
 * block is kept until its stream has come so far. It is given out again where the order of streams
 * allows that, and released when a call finds the device idle, or memory short.
 *
 * A pool belongs to a place: the device or the context whose memory it has. Each
 * libcuda.so.1 has one table of pools. Any thread; no lock is held while a call waits.
 */
#ifndef GPUSHARE_COMMON_CUDA_MEMORY_POOL_H
#define GPUSHARE_COMMON_CUDA_MEMORY_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/list.h"

/* CUmemPool_attribute. The first three are of 32 bits. */
enum {
    MEMORY_POOL_REUSE_EVENTS = 1,
    MEMORY_POOL_REUSE_OPPORTUNISTIC = 2,
    MEMORY_POOL_REUSE_INTERNAL = 3,
    MEMORY_POOL_RELEASE_THRESHOLD = 4,
    MEMORY_POOL_RESERVED_CURRENT = 5,
    MEMORY_POOL_RESERVED_HIGH = 6,
    MEMORY_POOL_USED_CURRENT = 7,
    MEMORY_POOL_USED_HIGH = 8,
};

/* The calls below a table of pools. A mark is an event that was recorded in a stream. */
struct memory_pool_calls {
    cuda_result (*alloc)(void *place, cuda_device_ptr *ptr, size_t size);
    cuda_result (*release)(void *place, cuda_device_ptr ptr);
    /* Gives the size of the allocation that begins at ptr; an error if none does. */
    cuda_result (*measure)(void *place, cuda_device_ptr ptr, size_t *size);
    cuda_result (*mark)(void *place, cuda_stream stream, cuda_event *mark);
    cuda_result (*follow)(void *place, cuda_stream stream, cuda_event mark); /* the stream waits */
    cuda_result (*query)(cuda_event mark);
    cuda_result (*await)(cuda_event mark);
    void (*drop)(cuda_event mark);
    /* Gives back what `release` has kept for later allocations. NULL: it keeps nothing. */
    void (*trim)(void *place);
};

struct memory_pools {
    const struct memory_pool_calls *calls;
    pthread_mutex_t lock; /* guards the pools, their blocks and the tree */
    void *tree;           /* of blocks by address, as tsearch has it */
    struct list pools;
    atomic_size_t freed; /* blocks that are kept, so that programs without any take no lock */
};

/* Initialises a declared table. */
#define MEMORY_POOLS_INIT(table, its_calls)                                                        \
    {                                                                                              \
        .calls = (its_calls), .lock = PTHREAD_MUTEX_INITIALIZER, .pools = LIST_INIT((table).pools) \
    }

struct memory_pool {
    struct memory_pools *table;
    struct list_link link;
    void *place;
    struct list live, freed; /* blocks in use, and blocks that are kept, the oldest first */
    bool retired;            /* it goes with its last block */
    uint64_t most;           /* bytes that it may reserve; 0: any number */
    uint64_t threshold;      /* bytes that it keeps when the device is idle */
    uint64_t reserved, reserved_high, used, used_high;
    /* MEMORY_POOL_REUSE_...: the first has no effect, since the order that events make is not
     * followed. */
    bool reuse[MEMORY_POOL_REUSE_INTERNAL + 1];
};

/* Returns NULL without memory. most: 0, or the most bytes that it may reserve. */
struct memory_pool *memory_pool_new(struct memory_pools *table, void *place, uint64_t most);

/* The first pool of the place, which is made if there is none. NULL without memory. */
struct memory_pool *memory_pool_first(struct memory_pools *table, void *place);

/* Ends a pool: at once, or with the last of its blocks. */
void memory_pool_retire(struct memory_pool *pool);

/* Whether the handle is a pool of the table that was not retired. */
bool memory_pool_is(struct memory_pools *table, const struct memory_pool *handle);

/* Allocates memory that work in the stream may use from now on. Returns what the calls return. */
cuda_result memory_pool_alloc(struct memory_pool *pool, cuda_device_ptr *ptr, size_t size,
                              cuda_stream stream);

/* Frees a whole allocation behind the work that is in the stream now, whichever pool of the table
 * it is of. One of no pool is kept by this one until it is released. Returns CUDA_ERR_INVALID_VALUE
 * for what is no allocation or is free already. */
cuda_result memory_pool_free(struct memory_pool *pool, cuda_device_ptr ptr, cuda_stream stream);

/* Gives the pool in which an allocation is in use, or NULL. */
struct memory_pool *memory_pool_of(struct memory_pools *table, cuda_device_ptr ptr);

/* Before an allocation is freed at once: takes it out of its pool. Returns false, and does nothing,
 * if it is free already. */
bool memory_pool_disown(struct memory_pools *table, cuda_device_ptr ptr);

/* Releases kept blocks whose streams have come so far, the oldest first: of one pool until it
 * reserves no more than `keep` bytes; of each pool of the place until it is down to its
 * threshold. The former gives back what the calls keep as well. */
void memory_pool_trim(struct memory_pool *pool, uint64_t keep);
void memory_pool_settle(struct memory_pools *table, void *place);

/* Memory is short: waits for the streams of all kept blocks of the place, and releases them.
 * Returns whether there were any. */
bool memory_pool_give_back(struct memory_pools *table, void *place);

/* The place's memory and events are about to go: forgets its blocks. The pools stay, empty. */
void memory_pool_forget(struct memory_pools *table, void *place);

/* The attributes of a pool, as cuMemPoolGetAttribute has them. Setting an attribute returns
 * CUDA_ERR_INVALID_VALUE for one that can't be set to the value. */
cuda_result memory_pool_get(struct memory_pool *pool, int attribute, uint64_t *value);
cuda_result memory_pool_set(struct memory_pool *pool, int attribute, uint64_t value);

#endif
