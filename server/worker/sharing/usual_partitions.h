/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * usual_partitions: the partitions and CUstreams that are made before the first client comes, so
 * that clients of the usual kinds wait for no quiet window.
 *
 * They are the whole device, with a CUstream on each hardware queue; the two halves; the four
 * quarters; and for each of these sizes what a client that requested so many multiprocessors leaves
 * to others. Which SM groups these are is what server/scheduler/sm_allocation.h gives the first
 * clients that ask for as much.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_USUAL_PARTITIONS_H
#define GPUSHARE_SERVER_WORKER_SHARING_USUAL_PARTITIONS_H

#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/stream_pool.h"

/* CUstreams of a partition, but for the whole device: enough for what a client usually has in
 * flight at once; and those that are more urgent, for clients that are on multiprocessors of their
 * own. The submitter wishes for more. */
enum { USUAL_PARTITIONS_STREAMS = 4, USUAL_PARTITIONS_HOME_STREAMS = 2 };

/*
 * At start, on an idle device. Returns the driver's result for the whole device, without which
 * nobody can work. If others can't be made, they are made when they are needed; but an error that
 * ends the context is returned.
 */
cuda_result usual_partitions_make(struct partition_table *partitions, struct stream_pool *pool);

#endif
