/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sm_group_sizes: how many multiprocessors a set of SM groups has, counted one by one. The worker
 * has the number from the driver's own split (server/worker/sharing/partition.h).
 */
#ifndef GPUSHARE_TESTS_SUPPORT_SM_GROUP_SIZES_H
#define GPUSHARE_TESTS_SUPPORT_SM_GROUP_SIZES_H

#include <stdint.h>

#include "server/scheduler/sm/sm_allocation.h"

static inline uint32_t sm_group_sizes_sum(const struct sm_allocation *allocation,
                                          const struct sm_group_set *set)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i + 1 < allocation->count; i++)
        if (sm_group_set_has(set, i))
            sum += allocation->sm_group_size;
    if (sm_group_set_has(set, allocation->count - 1))
        sum += allocation->last_size;
    if (allocation->remainder && sm_group_set_has(set, allocation->count))
        sum += allocation->remainder;
    return sum;
}

#endif
