/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * partition: a set of the device's multiprocessors that clients' streams run on.
 *
 * The multiprocessors are split once into the smallest groups that the driver allows, the SM
 * groups; the remainder is the last SM group. A partition is a set of SM groups as a green context,
 * shared by the clients that have the same set. server/scheduler/sm/sm_allocation.h chooses the SM
 * groups of each client.
 *
 * The rest of a split may be as large as an SM group or larger, and differs from one device to the
 * next of a model: on an H100 15 SM groups of 8 were seen, and 12 that are left. Then it is no
 * remainder but one SM group more. As a remainder, which shares rarely get, it would make two
 * halves of the device impossible.
 *
 * The set of all SM groups is the unsplit device, as a green context too: work in the primary
 * context's own streams would run on every client's multiprocessors. Green contexts are never made
 * current.
 *
 * From CUDA 13.1 on a green context may ask for hardware queues that are kept apart from other
 * green contexts': each partition then asks for its part of those that there are, the whole device
 * for all. Where the driver refuses that, partitions share the device's queues.
 *
 * Where the driver lacks green contexts, or refuses to make one, there is one SM group, the whole
 * device, and limits hold as duty cycles (gate.h); partitions.unsupported says why.
 *
 * partition_find, partition_put, partition_too_many and partition_has_room: any thread; they make
 * no call of the driver. The other functions: the quiet thread, in a quiet window, for making and
 * destroying may wait for the device; or whoever starts and stops the worker.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_PARTITION_H
#define GPUSHARE_SERVER_WORKER_SHARING_PARTITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "server/scheduler/sm/sm_allocation.h"
#include "server/worker/device/gpu.h"

/* A group of channels has 64 sub-contexts from Volta on, and each green context takes one, with
 * memory of its own: what is kept must leave most of them to clients. */
enum { PARTITIONS_KEPT = 16 };

struct driver_queue_set;

struct partition {
    struct partition *next;
    struct sm_group_set sm_groups;
    uint32_t multiprocessors;
    uint32_t clients;     /* number of clients that have it; under the lock */
    uint64_t put;         /* orders unused partitions by their last use; under the lock */
    bool whole;           /* the unsplit device */
    cuda_green_ctx green; /* NULL where the driver offers none */
    uint32_t queue_count; /* hardware queues of its own that the driver was asked for, at most
                             DRIVER_QUEUES; 0: none */
    struct driver_queue_set *queues; /* these; NULL: the device's. Set by stream_pool.h */
};

struct partition_table {
    const struct gpu *gpu;
    bool supported;
    char unsupported[160];        /* the reason, a part of a sentence; "" if supported */
    cuda_dev_resource whole;      /* the unsplit device */
    bool whole_refused;           /* as the description of a green context */
    cuda_dev_resource balanced;   /* hardware queues of a green context's own; type 0: none */
    cuda_dev_resource *sm_groups; /* count of them */
    uint32_t count;               /* SM groups, the rest included */
    uint32_t sm_group_size;       /* multiprocessors of each SM group but the rest */
    uint32_t rest;                /* of the last one, if it has fewer or more; else 0 */
    uint32_t total;               /* multiprocessors of the device */
    uint32_t kept_max;            /* PARTITIONS_KEPT; tests lower it */
    pthread_mutex_t lock;         /* of the list; never held across a driver call */
    struct partition *list;
    uint32_t kept; /* partitions of the list that no client has */
    uint64_t puts;
};

/*
 * Splits the device, and makes the partition of all SM groups to see that the driver does. A driver
 * that refuses any step is no error: the device is then not divided. Only an error that ends the
 * context is one: its number, and why.
 */
uint32_t partition_table_open(struct partition_table *partitions, const struct gpu *gpu,
                              struct error *why);
/* Idempotent. */
void partition_table_close(struct partition_table *partitions);

/* The partition of a set if it exists, else NULL. The caller has it until partition_put. */
struct partition *partition_find(struct partition_table *partitions,
                                 const struct sm_group_set *sm_groups);

/* Makes a partition that does not exist; the caller has it, and nobody can find it before
 * partition_publish. Returns the driver's result. The set must not be empty. */
cuda_result partition_make(struct partition_table *partitions, const struct sm_group_set *sm_groups,
                           struct partition **partition);
void partition_publish(struct partition_table *partitions, struct partition *partition);

/* The number of multiprocessors of one SM group. */
static inline uint32_t partition_sm_group(const struct partition_table *partitions,
                                          uint32_t sm_group)
{
    return partitions->rest && sm_group + 1 == partitions->count ? partitions->rest
                                                                 : partitions->sm_group_size;
}

/* How many multiprocessors a partition of these SM groups has. */
uint32_t partition_multiprocessors(const struct partition_table *partitions,
                                   const struct sm_group_set *sm_groups);

/* Initialises *allocation for this device. Returns 0 or -EINVAL, as sm_allocation_open does. */
int partition_open_allocation(const struct partition_table *partitions,
                              struct sm_allocation *allocation);

/* One client less has it. Returns whether more than kept_max are kept now. */
bool partition_put(struct partition_table *partitions, struct partition *partition);
bool partition_too_many(struct partition_table *partitions);
/* Whether one more can be kept. */
bool partition_has_room(struct partition_table *partitions);

/*
 * Takes the partition that was longest unused out of the pool: any if `all`, else only while more
 * than kept_max are kept. NULL: there is none. The caller drops it with its CUstreams once its work
 * is done, with partition_destroy; or gives it back with partition_return.
 */
struct partition *partition_take_unused(struct partition_table *partitions, bool all);
void partition_return(struct partition_table *partitions, struct partition *partition);
void partition_destroy(struct partition_table *partitions, struct partition *partition);

#endif
