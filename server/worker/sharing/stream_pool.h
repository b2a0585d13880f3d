/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream_pool: the CUstreams of the device, lent to rings while these have work.
 *
 * The device has at most 32 hardware queues. CUstreams beyond that number share queues, and then
 * one client's work waits for another's. So a ring is bound to a CUstream of its client's partition
 * and its own priority only while it has work in flight. Different clients share a CUstream only
 * when there is no other way.
 *
 * Making or destroying a CUstream may wait for the device, so the control thread alone does either,
 * and beforehand: with a partition, and when a client opens a stream. The submitter takes what
 * there is. It shares if there is none for it, and notes a wish that the control thread grants.
 *
 * The pool has a lock of its own, taken when a ring is bound or unbound, not for each command. No
 * call of the driver is made under it.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_STREAM_POOL_H
#define GPUSHARE_SERVER_WORKER_SHARING_STREAM_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>

#include "server/worker/client/client.h"

enum {
    STREAM_POOL_QUEUES = 32,
    /* Made at start for the whole device: the streams of eight clients as the library opens them,
     * so that connecting waits for no running kernel. The other queues are left to partitions. */
    STREAM_POOL_FIRST = 16,
};

/* Work that a ring left on this CUstream when it was bound to another one. */
struct pool_leaver {
    struct pool_leaver *next;
    const struct client_stream *stream;
    uint64_t value; /* of the ring's timeline; once reached, nothing of the ring is left here */
};

struct pool_stream {
    cuda_stream handle;
    struct partition *partition;
    int32_t priority;
    struct client_stream *users;
    uint32_t user_count;
    struct pool_leaver *leavers;
};

/* A CUstream that the submitter looked for and did not find. */
struct stream_wish {
    struct partition *partition; /* NULL: none, or gone meanwhile */
    int32_t priority;
};

struct stream_pool {
    const struct gpu *device;
    pthread_mutex_t lock;
    struct stream_wish wish; /* under the lock */
    atomic_bool wished;
    struct pool_stream **streams;
    uint32_t count, room;
    uint32_t looked_at; /* where stream_pool_query goes on */
};

void stream_pool_open(struct stream_pool *pool, const struct gpu *device);
/* All rings must be unbound. Destroys the CUstreams. */
void stream_pool_close(struct stream_pool *pool);

/*
 * Control thread: makes CUstreams of this priority until the partition has `count` of them, or the
 * device has no more hardware queues. Free CUstreams of other partitions and priorities make way;
 * one to which a ring is bound is not free (see stream_pool_release_idle). A partition that has
 * none at all gets one in any case. Returns the driver's result, or NOT_READY if there are fewer,
 * since none is free; those that were made stay.
 */
cuda_result stream_pool_prepare(struct stream_pool *pool, struct partition *partition,
                                int32_t priority, uint32_t count);

/* Whether the partition has a CUstream. Any thread. */
bool stream_pool_has(struct stream_pool *pool, const struct partition *partition);

/* Whether the submitter has wished for a CUstream since stream_pool_take_wish was last called. Any
 * thread. */
static inline bool stream_pool_wished(struct stream_pool *pool)
{
    return atomic_load(&pool->wished);
}

/* Control thread: takes the latest wish of the submitter, and how many such CUstreams there are
 * now. False: there is none, or its partition is gone. */
bool stream_pool_take_wish(struct stream_pool *pool, struct stream_wish *wish, uint32_t *there);

/*
 * Submitter: binds a ring that has no work in flight. A binding that is still there
 * is kept unless it shares with another client and need not, or the client's share
 * has changed. Afterwards stream->bound->handle is its CUstream. NOT_READY: the partition has none.
 */
cuda_result stream_pool_bind(struct stream_pool *pool, struct client_stream *stream);

/* Whether a bound ring's CUstream has its client's partition and its own priority. */
bool stream_pool_fits(const struct client_stream *stream);

/*
 * Binds a ring with work in flight to another CUstream that fits. Later work waits on the device,
 * by this event, until the work in flight is done. Returns the driver's result; on failure the ring
 * stays where it was. Submitter.
 */
cuda_result stream_pool_move(struct stream_pool *pool, struct client_stream *stream,
                             cuda_event event);

/*
 * Unbinds the rings of a client that are bound to a CUstream which does not fit and that have
 * nothing in flight. Returns whether rings that do have something in flight are left. Under the
 * client's lock.
 */
bool stream_pool_leave(struct stream_pool *pool, struct client *client);

/* Unbinds the client's rings that have nothing in flight. Under the client's lock: the submitter
 * holds it from binding a ring until work of the ring is in flight. */
void stream_pool_release_idle(struct stream_pool *pool, struct client *client);

/* Forgets a client that is about to leave; nothing of it is in flight. */
void stream_pool_forget(struct stream_pool *pool, const struct client *client);

/* Whether no ring is bound to a CUstream of the partition, and none has work left on them. */
bool stream_pool_drained(struct stream_pool *pool, const struct partition *partition);

/* Unbinds a ring whose work is done. Does nothing if the ring is not bound. */
void stream_pool_unbind(struct stream_pool *pool, struct client_stream *stream);

/* Destroys the free CUstreams of a partition that no client has any more and that has drained. */
void stream_pool_drop(struct stream_pool *pool, const struct partition *partition);

/* Number of the client's busy streams that share a CUstream with another client's busy stream. */
uint32_t stream_pool_shared(struct stream_pool *pool, const struct client *client);

/* Asks the driver about one CUstream with work in flight, another one at each call. Returns
 * CUDA_OK, CUDA_ERR_NOT_READY, or what is wrong with the device. */
cuda_result stream_pool_query(struct stream_pool *pool);

#endif
