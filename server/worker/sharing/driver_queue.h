/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_queue: the hardware queues behind the CUstreams, as far as the driver's habit is known.
 *
 * Work of CUstreams stands in a hardware queue until it begins, and the first there holds
 * up all behind it, whatever multiprocessors it is for.
 *
 * A context has at most 32 queues; a start finds out how many (queue_probe.h). The driver gives
 * them to CUstreams in turn as these are made, and one to each green context for the default
 * stream that nobody uses; it does not say which. So this module counts along. If the driver does
 * otherwise, two clients may share a queue without its being seen.
 *
 * A client has at most one queue as its home: as long as there are enough, no other client is bound
 * to a CUstream on it. Under the lock of struct stream_pool.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_DRIVER_QUEUE_H
#define GPUSHARE_SERVER_WORKER_SHARING_DRIVER_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct client;
struct partition;
struct pool_stream;

enum {
    DRIVER_QUEUES = 32,
    /* Of a queue; then submitting blocks the caller. Reports say about 1024; the worker's own work,
     * such as clearing memory, is not counted. */
    DRIVER_QUEUE_ENTRIES = 960,
};

struct driver_queue {
    _Atomic(const struct client *) home; /* readable without the lock */
    struct pool_stream *streams;
    uint32_t stream_count;
    uint32_t entries; /* in use, at most; submitter */
    bool reserved;    /* the worker's own work is here; since start */
};

/* The device's queues, or those that a partition has for itself. */
struct driver_queue_set {
    uint32_t count, next; /* next: that the driver gives next */
    struct driver_queue queues[DRIVER_QUEUES];
};

/* Rings that are bound to CUstreams of a queue, or have work left there. */
struct driver_queue_use {
    uint32_t own, others;
};

/* count: 1 to DRIVER_QUEUES. */
void driver_queue_set_open(struct driver_queue_set *set, uint32_t count);

/* The queue that the driver gives to what was just made. */
struct driver_queue *driver_queue_take(struct driver_queue_set *set);

/* The queue is for the worker's own work, which must not wait behind a client's. It is nobody's
 * home, and a client's rings come here only if their partition has no CUstream on another. */
void driver_queue_reserve(struct driver_queue *queue);

void driver_queue_join(struct driver_queue *queue, struct pool_stream *stream);
/* The CUstream was on a queue. */
void driver_queue_leave(struct pool_stream *stream);

/* Whether the queue is another client's home, or the worker's. Any thread, without the lock too. */
static inline bool driver_queue_is_foreign(const struct driver_queue *queue,
                                           const struct client *client)
{
    /* Relaxed: a home that was just given is respected with the next batch. */
    const struct client *home = atomic_load_explicit(&queue->home, memory_order_relaxed);
    return queue->reserved || (home && home != client);
}

/* client: may be NULL, then all are others. */
struct driver_queue_use driver_queue_use(const struct driver_queue *queue,
                                         const struct client *client);

/* Rings with work in flight on the queue. */
struct driver_queue_use driver_queue_busy(const struct driver_queue *queue,
                                          const struct client *client);

/* Whether no ring has work there: what comes next is at the queue's head at once. False of the
 * worker's own queue, whose work is not counted, and where more than 16 rings are on the queue. */
bool driver_queue_is_idle(const struct driver_queue *queue);

/* For how long work of other clients on the queue was not seen to get on, ns; the longest. A
 * command behind it may wait as long again. */
uint64_t driver_queue_stands(const struct driver_queue *queue, const struct client *client,
                             uint64_t now);

/* Commands that the client's rings have in flight on the queue; one after the other, as a rule. */
uint64_t driver_queue_in_flight(const struct driver_queue *queue, const struct client *client);

/* Queues that the client's rings are bound to, its home included. */
uint32_t driver_queue_count_own(const struct driver_queue_set *set, const struct client *client);
/* Queues that are nobody's home nor the worker's, and that no ring is bound to. */
uint32_t driver_queue_count_free(const struct driver_queue_set *set);

/* Counts the entries in use anew. Submitter. */
uint32_t driver_queue_count_entries(struct driver_queue *queue);

/* Whether a CUstream of the partition is on the queue. */
bool driver_queue_serves(const struct driver_queue *queue, const struct partition *partition);

/*
 * The best home for a client of the partition among the queues that are nobody's: one on which no
 * other client's ring is, then one of the client's own, then one that other partitions need least.
 * NULL: all on which the partition has CUstreams are other clients' homes.
 */
struct driver_queue *driver_queue_find_home(struct driver_queue_set *set,
                                            const struct client *client,
                                            const struct partition *partition);

#endif
