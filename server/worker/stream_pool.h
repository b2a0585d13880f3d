/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream_pool: the CUstreams of the device, lent to rings while these have work.
 *
 * The device has at most 32 hardware queues; streams beyond share them, and then
 * one client's work waits for another's. So a ring is bound to a CUstream of its
 * client's partition and its own priority only while work of it is in flight, and
 * different clients share one last.
 *
 * Any thread; the pool has a lock of its own, taken when a ring is bound or
 * unbound, not for each command.
 */
#ifndef GPUSHARE_SERVER_WORKER_STREAM_POOL_H
#define GPUSHARE_SERVER_WORKER_STREAM_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/worker/client.h"

enum { STREAM_POOL_QUEUES = 32 };

struct pool_stream {
    cuda_stream handle;
    struct partition *partition;
    int32_t priority;
    struct stream *users;
    uint32_t user_count;
};

struct stream_pool {
    const struct device *device;
    pthread_mutex_t lock;
    struct pool_stream **streams;
    uint32_t count, room;
    uint32_t looked_at; /* by stream_pool_query */
};

void stream_pool_open(struct stream_pool *pool, const struct device *device);
/* All streams must be unbound. */
void stream_pool_close(struct stream_pool *pool);

/* Makes sure that the partition has a CUstream of this priority, off the submitter's path. */
cuda_result stream_pool_prepare(struct stream_pool *pool, struct partition *partition,
                                int32_t priority);

/*
 * Submitter: binds a ring that has no work in flight. A binding that is still there
 * is kept unless it shares with another client and need not. Afterwards
 * stream->bound->handle is its CUstream.
 */
cuda_result stream_pool_bind(struct stream_pool *pool, struct stream *stream);

/* The ring's work is done. Idempotent. */
void stream_pool_unbind(struct stream_pool *pool, struct stream *stream);

/* Destroys the CUstreams of a partition that nobody has any more. */
void stream_pool_drop(struct stream_pool *pool, const struct partition *partition);

/* How many of the client's busy streams share a CUstream with another client's busy one. */
uint32_t stream_pool_shared(struct stream_pool *pool, const struct client *client);

/* Asks the driver about one CUstream with work in flight, another one each time: CUDA_OK, or
 * CUDA_ERR_NOT_READY, or what is wrong with the device. */
cuda_result stream_pool_query(struct stream_pool *pool);

#endif
