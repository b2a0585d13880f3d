/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/usual_partitions.h"

#include "common/util.h"
#include "server/scheduler/plan.h"
#include "server/scheduler/sm_allocation.h"

enum { PARTS_MAX = 4 };

static cuda_result make_whole(struct partition_table *partitions, struct stream_pool *pool)
{
    struct sm_group_set all = {{0}};
    for (uint32_t i = 0; i < partitions->count; i++)
        sm_group_set_add(&all, i);
    struct partition *whole = partition_find(partitions, &all);
    cuda_result result = CUDA_OK;
    if (!whole) {
        result = partition_make(partitions, &all, &whole);
        if (result != CUDA_OK)
            return result;
        partition_publish(partitions, whole);
    }
    result = stream_pool_add_partition(pool, whole);
    if (result == CUDA_OK)
        result = stream_pool_prepare(pool, whole, 0, DRIVER_QUEUES);
    partition_put(partitions, whole);
    return result;
}

/* At home a client's streams are one step more urgent than those of clients that borrow. */
static cuda_result make_streams(struct stream_pool *pool, struct partition *partition)
{
    int32_t home = max(-1, pool->gpu->info.priority_greatest);
    cuda_result result = stream_pool_add_partition(pool, partition);
    if (result == CUDA_OK)
        result = stream_pool_prepare(pool, partition, 0, USUAL_PARTITIONS_STREAMS);
    if (result == CUDA_OK && home < 0)
        result = stream_pool_prepare(pool, partition, home, USUAL_PARTITIONS_HOME_STREAMS);
    return result;
}

/* A partition that is there already is left as it is. */
static cuda_result make_part(struct partition_table *partitions, struct stream_pool *pool,
                             const struct sm_group_set *sm_groups)
{
    struct partition *made = partition_find(partitions, sm_groups);
    if (!made) {
        cuda_result result = partition_make(partitions, sm_groups, &made);
        if (result != CUDA_OK)
            return result;
        result = make_streams(pool, made);
        if (result != CUDA_OK) {
            stream_pool_drop(pool, made);
            partition_destroy(partitions, made);
            return result;
        }
        partition_publish(partitions, made);
    }
    partition_put(partitions, made);
    return CUDA_OK;
}

/* The sets of `parts` clients that request an equal part each; and what the first leaves to one
 * that requests nothing. */
static cuda_result make_parts(struct partition_table *partitions, struct stream_pool *pool,
                              uint32_t parts)
{
    struct sm_allocation allocation;
    struct sm_allocation_client clients[PARTS_MAX] = {0}, other = {0};
    struct error why;
    cuda_result result = CUDA_OK;
    uint32_t part = PLAN_WHOLE / parts;
    if (sm_allocation_open(&allocation, partitions->count - (partitions->remainder ? 1 : 0),
                           partitions->sm_group_size, partitions->remainder))
        return CUDA_OK;
    for (uint32_t i = 0; i < parts; i++) {
        if (sm_allocation_add(&allocation, &clients[i], part, part, &why))
            return CUDA_OK;
        sm_allocation_wants(&allocation, &clients[i]);
        if (i == 0 && sm_allocation_add(&allocation, &other, 0, PLAN_WHOLE, &why) == 0) {
            sm_allocation_wants(&allocation, &other);
            result = make_part(partitions, pool, &other.now);
            sm_allocation_remove(&allocation, &other);
        }
    }
    for (uint32_t i = 0; i < parts && result == CUDA_OK; i++)
        result = make_part(partitions, pool, &clients[i].now);
    return result;
}

cuda_result usual_partitions_make(struct partition_table *partitions, struct stream_pool *pool)
{
    cuda_result result = make_whole(partitions, pool);
    if (result != CUDA_OK || !partitions->supported)
        return result;
    for (uint32_t parts = 2; parts <= PARTS_MAX && result == CUDA_OK; parts *= 2)
        result = make_parts(partitions, pool, parts);
    return cuda_driver_error_is_sticky(result) ? result : CUDA_OK;
}
