/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream_pool: the CUstreams of the device, lent to rings while these have work.
 *
 * There are fewer hardware queues than CUstreams, and work waits for whatever stands before it in
 * its queue (driver_queue.h). So what is handed out are queues: a ring is bound to a CUstream of
 * its client's partition and, where there is one, of its own priority, and chosen is the CUstream
 * for its queue:
 *
 *   - one on the client's home, or on another queue that the client has;
 *   - one on a queue that nobody has, if the client may have one more: STREAM_POOL_SPARE queues
 * stay free for clients that come, one for each client that has no work, and the rest is divided
 *     among those that have;
 *   - otherwise the client's rings share the queues that it has. It shares one with another client
 *     only if all CUstreams of its partition are on queues of others, or if such work stands on its
 *     own. It keeps away from a queue where another client's work has not got on for long: the
 *     kernel may be one that does not end.
 *
 * Making or destroying a CUstream may wait for the device. So it is done at start and in quiet
 * windows, never under the lock; elsewhere only once the driver was seen not to wait
 * (call_probe.h). The submitter takes what there is, and notes a wish.
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
#include "server/worker/sharing/driver_queue.h"
#include "server/worker/sharing/pool_stream.h"

enum {
    STREAM_POOL_SPARE = 4, /* queues */
    /* CUstreams, but for the first of a partition. Each has memory of its own in the driver; a
     * partition on each of its 64 sub-contexts then has two. */
    STREAM_POOL_MAX = 128,
    /* CUstreams that are made in one window to find an unused queue: each takes a millisecond or
     * two. */
    STREAM_POOL_TRIES = 8,
};

/* CUstreams that the submitter looked for and did not find. */
struct stream_wish {
    struct sm_group_set sm_groups; /* of the partition, which may be gone */
    int32_t priority;
    uint32_t count; /* 0: there is no wish */
};

/* CUstreams that are to be made. */
struct stream_order {
    struct partition *partition;
    int32_t priority;
    uint32_t count; /* that are missing on queues which nobody has; 0: done */
    bool destroys;  /* where there are too many, free CUstreams of other kinds make way */
    uint32_t made;
};

struct stream_pool {
    const struct gpu *gpu;
    pthread_mutex_t lock;
    struct driver_queue_set queues; /* of the device */
    bool reserved;                  /* one of them is the worker's */
    struct stream_wish wish;        /* under the lock */
    atomic_bool wished;             /* a wish was noted that was not taken */
    struct pool_stream **streams;
    uint32_t count, room;
    uint32_t clients;     /* joined */
    uint32_t homes;       /* of them, those that have one */
    uint32_t active;      /* of them, those that have rings bound */
    uint32_t leavers;     /* that no CUstream has forgotten */
    uint64_t changes;     /* of what a choice depends on; never 0 */
    uint64_t choices;     /* made so far; tests count them */
    uint32_t looked_at;   /* where stream_pool_query goes on */
    uint32_t entries_max; /* DRIVER_QUEUE_ENTRIES; tests lower it */
};

void stream_pool_open(struct stream_pool *pool, const struct gpu *gpu);
/* All rings must be unbound. Destroys the CUstreams. */
void stream_pool_close(struct stream_pool *pool);

/* ---- at start, or in a quiet window: one thread at a time, without locks held ---- */

/* The partition was just made: its default stream took a queue. Returns CUDA_OK or OUT_OF_MEMORY.
 */
cuda_result stream_pool_add_partition(struct stream_pool *pool, struct partition *partition);

/* The worker made a CUstream of its own just before it makes the pool's first one. Nobody's work
 * may hold up what it has there: clearing memory, for one. */
void stream_pool_reserve_queue(struct stream_pool *pool);

/* Makes CUstreams until the partition has `count` of this priority. With its first one, a partition
 * gets the local memory that there is on others (local_memory.h). Returns the driver's result; if
 * it is not CUDA_OK, those that were made stay. */
cuda_result stream_pool_prepare(struct stream_pool *pool, struct partition *partition,
                                int32_t priority, uint32_t count);

/* The device has so many hardware queues, 1 to DRIVER_QUEUES. At start, when the CUstreams are
 * those of one partition, in the order in which they were made, and no ring is bound. */
void stream_pool_count_queues(struct stream_pool *pool, uint32_t count);

/* Unbinds the rings that have nothing in flight. Only in a window: the submitter may be about to
 * use what such a ring is bound to. */
void stream_pool_reap(struct stream_pool *pool);

/* Makes CUstreams until the order's count of new ones are on queues that nobody has, at most
 * STREAM_POOL_TRIES. Returns the driver's result. Only in a window: it reaps. */
cuda_result stream_pool_extend(struct stream_pool *pool, struct stream_order *order);
/* Makes one of them, or none where there are too many and none may go; then the order is done.
 * Beside running work too, but no window may begin meanwhile: CUstreams are counted in the order in
 * which the driver gives them queues. */
cuda_result stream_pool_extend_once(struct stream_pool *pool, struct stream_order *order);

/* Gives one CUstream of each partition, at most `room`. Returns how many these are. */
uint32_t stream_pool_one_of_each(struct stream_pool *pool, cuda_stream streams[], uint32_t room);

/* Destroys the CUstreams of a partition that no client has any more. Returns whether all are gone;
 * otherwise a ring is bound to one still (stream_pool_reap), or a thread looks at it just now. */
bool stream_pool_drop(struct stream_pool *pool, const struct partition *partition);

/* ---- the control thread ---- */

/* A client comes: it gets a home when it first has work. Idempotent. */
void stream_pool_join(struct stream_pool *pool, struct client *client);
/* Forgets a client that leaves; nothing of it is in flight or bound. Idempotent. */
void stream_pool_forget(struct stream_pool *pool, struct client *client);

/* Takes the wish of the submitter. No other one is noted until stream_pool_grant. False: there is
 * none. */
bool stream_pool_take_wish(struct stream_pool *pool, struct stream_wish *wish);
/* The wish was seen to. */
void stream_pool_grant(struct stream_pool *pool);

/* ---- any thread ---- */

/* Whether the partition has a CUstream of this priority. */
bool stream_pool_has(struct stream_pool *pool, const struct partition *partition, int32_t priority);

/* Whether a wish waits to be taken. */
static inline bool stream_pool_wished(struct stream_pool *pool)
{
    return atomic_load(&pool->wished);
}

/* ---- the submitter ---- */

/*
 * Binds a ring that has no work in flight. A binding that is still there is kept unless its queue
 * is another client's now, or another client's work stands there, or the client's share or number
 * of queues has changed. A ring that has to share looks for another CUstream only when something
 * has changed since it last looked. Afterwards stream->bound->handle is its CUstream. NOT_READY:
 * the partition has none.
 */
cuda_result stream_pool_bind(struct stream_pool *pool, struct client_stream *stream);

/* Whether a bound ring's CUstream has its client's partition and its own priority, and its queue is
 * not another client's home. */
bool stream_pool_fits(const struct client_stream *stream);

/* Commands that the ring and those of its client that share its hardware queue have in flight. */
uint64_t stream_pool_in_flight(struct stream_pool *pool, const struct client_stream *stream);

/* Whether nothing is in flight in the bound ring's hardware queue, of any ring. */
bool stream_pool_is_idle(struct stream_pool *pool, const struct client_stream *stream);

/* Entries of the bound ring's hardware queue that are free at least. */
uint32_t stream_pool_entries_free(struct stream_pool *pool, const struct client_stream *stream);
/* So many were used for the batch whose end client_stream_written tells. */
void stream_pool_note_entries(struct client_stream *stream, uint32_t count);

/*
 * Binds a ring with work in flight to another CUstream that fits better, if there is one on a queue
 * that no other client uses: others would wait behind what the ring waits for. Its later work waits
 * on the device, by this event, until the work in flight is done.
 *
 * Returns the driver's result; on failure the ring stays where it was. NOT_READY: it may submit
 * nothing before work in flight is done, since it is not on its partition or a queue has no room.
 * Submitter.
 */
cuda_result stream_pool_move(struct stream_pool *pool, struct client_stream *stream,
                             cuda_event event);

/* Unbinds a ring whose work is done. Does nothing if the ring is not bound. */
void stream_pool_unbind(struct stream_pool *pool, struct client_stream *stream);

/* Number of the client's busy streams that share a hardware queue with another client's busy
 * stream. */
uint32_t stream_pool_shared(struct stream_pool *pool, const struct client *client);

/* Asks the driver about one CUstream with work in flight, another one at each call. Returns
 * CUDA_OK, CUDA_ERR_NOT_READY, or what is wrong with the device. */
cuda_result stream_pool_query(struct stream_pool *pool);

/* The hardware queues of the partition's CUstreams: its own, or the device's. */
static inline struct driver_queue_set *stream_pool_set(struct stream_pool *pool,
                                                       const struct partition *partition)
{
    return partition->queues ? partition->queues : &pool->queues;
}

#endif
