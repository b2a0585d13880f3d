/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * pool_stream: one CUstream of the pool, the rings that have it on loan, and what these left on it.
 *
 * Under the lock of struct stream_pool, but for making and destroying, which call the driver and
 * may wait for the device.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_POOL_STREAM_H
#define GPUSHARE_SERVER_WORKER_SHARING_POOL_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/client/client.h"

struct driver_queue;

/* Work that a ring left on this CUstream when it was bound to another one. */
struct pool_leaver {
    struct pool_leaver *next;
    const struct client_stream *stream;
    uint64_t value;   /* of the ring's timeline; once reached, nothing of the ring is left here */
    uint32_t entries; /* of the queue, that it left in use at most */
};

struct pool_stream {
    cuda_stream handle;
    struct partition *partition;
    int32_t priority;
    struct driver_queue *queue; /* that the driver put it on, as far as is known */
    struct pool_stream *queue_next;
    struct client_stream *users;
    uint32_t user_count;
    struct pool_leaver *leavers;
};

/* Without the lock. The new CUstream is in no table and on no queue. */
cuda_result pool_stream_make(struct pool_stream **stream, const struct gpu *gpu,
                             struct partition *partition, int32_t priority);
/* Without the lock: it is out of the table, and nothing is left on it. */
void pool_stream_destroy(struct pool_stream *stream, const struct gpu *gpu);

/* Forgets leavers that have no work left on this CUstream, and all rings of this client (NULL: of
 * none). Returns how many it forgot. */
uint32_t pool_stream_prune(struct pool_stream *stream, const struct client *client);

static inline bool pool_stream_is_of(const struct pool_stream *stream,
                                     const struct partition *partition, int32_t priority)
{
    return stream->partition == partition && stream->priority == priority;
}

#endif
