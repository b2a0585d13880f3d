/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/usual_partitions.h"

#include "common/util.h"
#include "server/scheduler/plan.h"
#include "server/scheduler/sm/sm_allocation.h"
#include "server/worker/sharing/queue_probe.h"

/* The CUstreams of the whole device are the first, so the others' queues are counted right. Where
 * it has queues of its own, their number is known. */
static cuda_result count_queues(struct stream_pool *pool, const struct partition *whole)
{
    cuda_stream streams[DRIVER_QUEUES];
    uint32_t queues;
    if (whole->queues || !pool->gpu->cuda->cuLaunchHostFunc)
        return CUDA_OK;
    for (uint32_t i = 0; i < pool->count; i++)
        streams[i] = pool->streams[i]->handle;
    cuda_result result = queue_probe_run(pool->gpu, streams, pool->count, &queues);
    if (result == CUDA_OK && queues != pool->queues.count)
        stream_pool_count_queues(pool, queues);
    return result;
}

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
    /* clearing's, which was made when there was this partition and no CUstream. */
    stream_pool_reserve_queue(pool);
    if (result == CUDA_OK)
        result = stream_pool_prepare(pool, whole, 0, DRIVER_QUEUES);
    if (result == CUDA_OK)
        result = count_queues(pool, whole);
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

cuda_result usual_partitions_make_one(struct partition_table *partitions, struct stream_pool *pool,
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

/* ---- which SM groups ---- */

/* The sets of a size: the first client's, what it leaves to others, the second client's, and so on.
 */
enum { OF_FIRST, OF_OTHERS, SETS_MAX = PARTITIONS_KEPT };

/* Places so many clients of a size on an empty device, and takes the set of the last one, or of a
 * client that requests nothing beside the first. False: they don't fit, or nothing is left. */
static bool find_set(const struct partition_table *partitions, uint32_t size, uint32_t which,
                     struct sm_group_set *sm_groups)
{
    struct sm_allocation allocation;
    struct sm_allocation_client clients[SETS_MAX] = {0}, other = {0};
    struct error unused;
    uint32_t count = max(which, 1u);
    if (partition_open_allocation(partitions, &allocation) || count > allocation.count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (sm_allocation_add(&allocation, &clients[i], NULL, size, size, &unused))
            return false;
        sm_allocation_wants(&allocation, &clients[i]);
    }
    *sm_groups = clients[count - 1].now;
    if (which == OF_OTHERS) {
        if (sm_allocation_add(&allocation, &other, NULL, 0, PLAN_WHOLE, &unused))
            return false;
        sm_allocation_wants(&allocation, &other);
        *sm_groups = other.now;
    }
    return !sm_group_set_is_empty(sm_groups);
}

static bool is_there(struct partition_table *partitions, const struct sm_group_set *sm_groups)
{
    struct partition *found = partition_find(partitions, sm_groups);
    if (found)
        partition_put(partitions, found);
    return found;
}

bool usual_partitions_next(struct partition_table *partitions, struct usual_sizes *sizes,
                           struct sm_group_set *sm_groups)
{
    const uint32_t end = SETS_MAX * PROTO_PARTITION_SIZES_MAX;
    while (partitions->supported && sizes->next < end && partition_has_room(partitions)) {
        uint32_t size = sizes->of[sizes->next % PROTO_PARTITION_SIZES_MAX];
        uint32_t which = sizes->next / PROTO_PARTITION_SIZES_MAX;
        sizes->next++;
        if (size && find_set(partitions, size, which, sm_groups) &&
            !is_there(partitions, sm_groups))
            return true;
    }
    sizes->next = end;
    return false;
}

cuda_result usual_partitions_make(struct partition_table *partitions, struct stream_pool *pool)
{
    struct usual_sizes usual = {.of = {PLAN_WHOLE / 2, PLAN_WHOLE / 4}};
    struct sm_group_set sm_groups;
    cuda_result result = make_whole(partitions, pool);
    if (result != CUDA_OK)
        return result;
    while (result == CUDA_OK && usual_partitions_next(partitions, &usual, &sm_groups))
        result = usual_partitions_make_one(partitions, pool, &sm_groups);
    return cuda_driver_error_is_sticky(result) ? result : CUDA_OK;
}
