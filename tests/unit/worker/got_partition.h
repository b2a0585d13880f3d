/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* got_partition: the partition of a set of SM groups for tests, which need no quiet window to make
 * one. */
#ifndef GPUSHARE_TESTS_UNIT_WORKER_GOT_PARTITION_H
#define GPUSHARE_TESTS_UNIT_WORKER_GOT_PARTITION_H

#include "common/error.h"
#include "server/worker/sharing/partition.h"

/* Like partition_find, but makes and publishes the partition if it does not exist. Returns 0 or an
 * error number. */
static inline uint32_t got_partition(struct partition_table *partitions,
                                     const struct sm_group_set *sm_groups,
                                     struct partition **partition)
{
    *partition = partition_find(partitions, sm_groups);
    if (*partition)
        return 0;
    cuda_result result = partition_make(partitions, sm_groups, partition);
    if (result == CUDA_OK)
        partition_publish(partitions, *partition);
    return error_from_cuda((int)result);
}

#endif
