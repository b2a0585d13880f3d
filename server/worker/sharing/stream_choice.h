/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream_choice: which CUstream of the pool a ring should have, by the hardware queues that its
 * client has and may have. Under the pool's lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_STREAM_CHOICE_H
#define GPUSHARE_SERVER_WORKER_SHARING_STREAM_CHOICE_H

#include "common/clock.h"
#include "server/worker/sharing/stream_pool.h"

/* Most kernels are shorter. A queue on which another client's work stands for longer is avoided,
 * the more the longer it has stood. */
#define STREAM_CHOICE_STANDS_NS (100 * UNITS_MS)

/* A choice under way: the caller gives the ring and the time. */
struct stream_choice {
    const struct client_stream *stream;
    uint64_t now;  /* ns */
    uint32_t left; /* queues that the client may take */
    bool best;     /* no other CUstream could serve the ring better than the chosen one */
};

enum { /* the greater the better */
       STREAM_CHOICE_WORKERS = 1,
       STREAM_CHOICE_SHARED,
       STREAM_CHOICE_REFUSED,
       STREAM_CHOICE_OWN_USED,
       STREAM_CHOICE_ANOTHER,
       STREAM_CHOICE_OWN_IDLE,
};

/* Finds the client a home, if it has none, and the CUstream of its partition that suits the ring
 * best. NULL: there is none. */
struct pool_stream *stream_choice_look(struct stream_pool *pool, struct stream_choice *choice);

/* How the ring would be served there: STREAM_CHOICE_... */
unsigned stream_choice_kind(const struct stream_choice *choice,
                            const struct pool_stream *candidate);

/* Whether a new CUstream could do better than this one; and has one wished for. */
bool stream_choice_could_be_better(struct stream_pool *pool, const struct stream_choice *choice,
                                   const struct pool_stream *found);
void stream_choice_wish(struct stream_pool *pool, const struct stream_choice *choice);

/* CUstreams of the partition and priority. */
uint32_t stream_choice_count_fitting(const struct stream_pool *pool,
                                     const struct partition *partition, int32_t priority);

/* Queues that one client may have, its home included. */
uint32_t stream_choice_queues_allowed(const struct stream_pool *pool,
                                      const struct driver_queue_set *set);

/* The client has no home any more. */
void stream_choice_leave_home(struct stream_pool *pool, struct client *client);

#endif
