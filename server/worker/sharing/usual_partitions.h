/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * usual_partitions: the partitions and CUstreams that are made before a client needs them, so that
 * clients of the usual kinds wait for no quiet window.
 *
 * At start these are the whole device, with a CUstream on each hardware queue; the two halves; the
 * four quarters; and for each of these sizes what a client that requested so many multiprocessors
 * leaves to others. The sizes that an administrator's rules and profiles name come later, with the
 * schedule. A size has the SM groups that server/scheduler/sm/sm_allocation.h gives the first
 * clients that ask for as much.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_USUAL_PARTITIONS_H
#define GPUSHARE_SERVER_WORKER_SHARING_USUAL_PARTITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/stream_pool.h"

/* CUstreams of a partition, but for the whole device: enough for what a client usually has in
 * flight at once; and those that are more urgent, for clients that are on multiprocessors of their
 * own. The submitter wishes for more. */
enum { USUAL_PARTITIONS_STREAMS = 4, USUAL_PARTITIONS_HOME_STREAMS = 2 };

/* The administrator's sizes, and how far the partitions for them are made. The control thread's. */
struct usual_sizes {
    uint32_t of[PROTO_PARTITION_SIZES_MAX]; /* hundredths of a per cent; 0: none */
    uint32_t next;                          /* of all sets of all sizes */
};

/*
 * At start, on an idle device. Returns the driver's result for the whole device, without which
 * nobody can work. If others can't be made, they are made when they are needed; but an error that
 * ends the context is returned.
 */
cuda_result usual_partitions_make(struct partition_table *partitions, struct stream_pool *pool);

/*
 * The next set of SM groups that the sizes need and that has no partition; false: there is none,
 * or as many partitions are kept as may be. First comes a set for a client of each size, then what
 * that client leaves to others, then a set for a second client of each size.
 */
bool usual_partitions_next(struct partition_table *partitions, struct usual_sizes *sizes,
                           struct sm_group_set *sm_groups);

/* Makes such a partition with its CUstreams, unless there is one by now. In a quiet window. Returns
 * the driver's result; after a failure nothing was made. */
cuda_result usual_partitions_make_one(struct partition_table *partitions, struct stream_pool *pool,
                                      const struct sm_group_set *sm_groups);

#endif
