/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "common/cuda/driver_error.h"
#include "server/worker/sharing/driver_queue.h"

/* The device stays whole. */
static void note_unsupported(struct partition_table *partitions, const char *reason)
{
    snprintf(partitions->unsupported, sizeof partitions->unsupported, "%s", reason);
    free(partitions->sm_groups);
    partitions->sm_groups = NULL;
    partitions->supported = false;
    partitions->count = 1;
    partitions->rest = 0;
    partitions->total = partitions->gpu->info.multiprocessors;
    partitions->sm_group_size = partitions->total;
}

/* divided: the multiprocessors were; making a green context of them was refused. */
static void note_refused(struct partition_table *partitions, bool divided, cuda_result result)
{
    char reason[sizeof partitions->unsupported];
    snprintf(reason, sizeof reason,
             divided ? MESSAGE_TEXT(partitions_green_refused) : MESSAGE_TEXT(partitions_refused),
             driver_error_name(result), (int)result);
    note_unsupported(partitions, reason);
}

/* Whether the driver accepts the rest in one description with SM groups of the split. */
static bool rest_joins(const struct partition_table *partitions)
{
    cuda_dev_resource both[2] = {partitions->sm_groups[0],
                                 partitions->sm_groups[partitions->count - 1]};
    cuda_resource_desc description;
    return partitions->gpu->cuda->cuDevResourceGenerateDesc(&description, both, 2) == CUDA_OK;
}

static cuda_result split_device(struct partition_table *partitions)
{
    const struct cuda_driver *cuda = partitions->gpu->cuda;
    unsigned least = partitions->whole.sm.min_partition_size;
    unsigned groups = 0;
    if (least == 0)
        least = 1;
    cuda_result result =
        cuda->cuDevSmResourceSplitByCount(NULL, &groups, &partitions->whole, NULL, 0, least);
    if (result != CUDA_OK)
        return result;
    if (groups == 0 || groups >= SM_GROUPS_MAX)
        return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
    partitions->sm_groups = calloc(groups + 1, sizeof *partitions->sm_groups);
    if (!partitions->sm_groups)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_dev_resource rest;
    memset(&rest, 0, sizeof rest);
    result = cuda->cuDevSmResourceSplitByCount(partitions->sm_groups, &groups, &partitions->whole,
                                               &rest, 0, least);
    if (result != CUDA_OK)
        return result;
    partitions->count = groups;
    partitions->sm_group_size = partitions->sm_groups[0].sm.sm_count;
    if (rest.type == CUDA_RESOURCE_SM && rest.sm.sm_count) {
        partitions->sm_groups[partitions->count++] = rest;
        if (rest_joins(partitions))
            partitions->rest = rest.sm.sm_count;
        else
            partitions->count--;
    }
    return CUDA_OK;
}

/* ---- hardware queues of a partition's own ---- */

/* Two at least: with one, a client's streams would wait for each other. */
#define QUEUES_MIN 2u

static void find_balanced(struct partition_table *partitions)
{
    cuda_dev_resource *balanced = &partitions->balanced;
    cuda_result result = partitions->gpu->cuda->cuDeviceGetDevResource(
        partitions->gpu->handle, balanced, CUDA_RESOURCE_WORKQUEUE_CONFIG);
    /* Drivers before 13.1 know no such resource. */
    if (result != CUDA_OK || balanced->workqueue.concurrency == 0)
        *balanced = (cuda_dev_resource){.type = CUDA_RESOURCE_INVALID};
    else
        balanced->workqueue.scope = CUDA_WORKQUEUE_SCOPE_GREEN_BALANCED;
}

static uint32_t queues_of(const struct partition_table *partitions,
                          const struct partition *partition)
{
    uint32_t all = min(partitions->balanced.workqueue.concurrency, (unsigned)DRIVER_QUEUES);
    uint32_t part = all * partition->multiprocessors / partitions->total;
    return min(max(part, QUEUES_MIN), all);
}

static cuda_result describe_and_create(struct partition_table *partitions,
                                       struct partition *partition, cuda_dev_resource *chosen,
                                       unsigned count)
{
    const struct cuda_driver *cuda = partitions->gpu->cuda;
    cuda_resource_desc description;
    cuda_result result = cuda->cuDevResourceGenerateDesc(&description, chosen, count);
    if (result == CUDA_OK)
        result = cuda->cuGreenCtxCreate(&partition->green, description, partitions->gpu->handle,
                                        CUDA_GREEN_CTX_DEFAULT_STREAM);
    return result;
}

/* chosen: has room for one more. */
static cuda_result create_balanced(struct partition_table *partitions, struct partition *partition,
                                   cuda_dev_resource *chosen, unsigned count)
{
    chosen[count] = partitions->balanced;
    partition->queue_count = queues_of(partitions, partition);
    chosen[count].workqueue.concurrency = partition->queue_count;
    cuda_result result = describe_and_create(partitions, partition, chosen, count + 1);
    if (result == CUDA_OK || cuda_driver_error_is_sticky(result))
        return result;
    partition->queue_count = 0;
    cuda_result without = describe_and_create(partitions, partition, chosen, count);
    /* If it was not the queues, the next partition may ask for some. */
    if (without == CUDA_OK) {
        partitions->balanced.type = CUDA_RESOURCE_INVALID;
        log_warning(MESSAGE_TEXT(work_queues_refused), partitions->gpu->info.device,
                    cuda_driver_error_sentence(result));
    }
    return without;
}

static cuda_result create_green(struct partition_table *partitions, struct partition *partition)
{
    cuda_dev_resource chosen[SM_GROUPS_MAX + 1];
    unsigned count = 0;
    bool unsplit = partition->whole && !partitions->whole_refused;
    if (unsplit)
        chosen[count++] = partitions->whole;
    for (uint32_t i = 0; !unsplit && i < partitions->count; i++)
        if (sm_group_set_has(&partition->sm_groups, i))
            chosen[count++] = partitions->sm_groups[i];
    return partitions->balanced.type == CUDA_RESOURCE_INVALID
               ? describe_and_create(partitions, partition, chosen, count)
               : create_balanced(partitions, partition, chosen, count);
}

uint32_t partition_multiprocessors(const struct partition_table *partitions,
                                   const struct sm_group_set *sm_groups)
{
    uint32_t count = sm_group_set_count(sm_groups);
    if (count == partitions->count && !partitions->whole_refused)
        return partitions->total;
    return partitions->rest && sm_group_set_has(sm_groups, partitions->count - 1)
               ? (count - 1) * partitions->sm_group_size + partitions->rest
               : count * partitions->sm_group_size;
}

int partition_open_allocation(const struct partition_table *partitions,
                              struct sm_allocation *allocation)
{
    return sm_allocation_open(allocation, partitions->count - (partitions->rest ? 1 : 0),
                              partitions->sm_group_size, partitions->rest);
}

cuda_result partition_make(struct partition_table *partitions, const struct sm_group_set *sm_groups,
                           struct partition **partition)
{
    struct partition *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERR_OUT_OF_MEMORY;
    made->sm_groups = *sm_groups;
    made->whole = sm_group_set_count(sm_groups) == partitions->count;
    made->multiprocessors = partition_multiprocessors(partitions, sm_groups);
    made->clients = 1;
    cuda_result result = partitions->supported ? create_green(partitions, made) : CUDA_OK;
    if (result == CUDA_OK)
        *partition = made;
    else
        free(made);
    return result;
}

void partition_publish(struct partition_table *partitions, struct partition *partition)
{
    pthread_mutex_lock(&partitions->lock);
    partition->next = partitions->list;
    partitions->list = partition;
    pthread_mutex_unlock(&partitions->lock);
}

struct partition *partition_find(struct partition_table *partitions,
                                 const struct sm_group_set *sm_groups)
{
    pthread_mutex_lock(&partitions->lock);
    struct partition *found = partitions->list;
    while (found && !sm_group_set_equals(&found->sm_groups, sm_groups))
        found = found->next;
    if (found && found->clients++ == 0)
        partitions->kept--;
    pthread_mutex_unlock(&partitions->lock);
    return found;
}

bool partition_put(struct partition_table *partitions, struct partition *partition)
{
    pthread_mutex_lock(&partitions->lock);
    partition->put = ++partitions->puts;
    if (--partition->clients == 0)
        partitions->kept++;
    bool too_many = partitions->kept > partitions->kept_max;
    pthread_mutex_unlock(&partitions->lock);
    return too_many;
}

bool partition_too_many(struct partition_table *partitions)
{
    pthread_mutex_lock(&partitions->lock);
    bool too_many = partitions->kept > partitions->kept_max;
    pthread_mutex_unlock(&partitions->lock);
    return too_many;
}

bool partition_has_room(struct partition_table *partitions)
{
    pthread_mutex_lock(&partitions->lock);
    bool has_room = partitions->kept < partitions->kept_max;
    pthread_mutex_unlock(&partitions->lock);
    return has_room;
}

struct partition *partition_take_unused(struct partition_table *partitions, bool all)
{
    struct partition **oldest = NULL, *taken = NULL;
    pthread_mutex_lock(&partitions->lock);
    for (struct partition **link = &partitions->list;
         partitions->kept > (all ? 0 : partitions->kept_max) && *link; link = &(*link)->next)
        if ((*link)->clients == 0 && (!oldest || (*link)->put < (*oldest)->put))
            oldest = link;
    if (oldest) {
        taken = *oldest;
        *oldest = taken->next;
        partitions->kept--;
    }
    pthread_mutex_unlock(&partitions->lock);
    return taken;
}

void partition_return(struct partition_table *partitions, struct partition *partition)
{
    pthread_mutex_lock(&partitions->lock);
    partition->next = partitions->list;
    partitions->list = partition;
    partitions->kept++;
    pthread_mutex_unlock(&partitions->lock);
}

void partition_destroy(struct partition_table *partitions, struct partition *partition)
{
    if (partition->green)
        partitions->gpu->cuda->cuGreenCtxDestroy(partition->green);
    free(partition->queues);
    free(partition);
}

/* ---- opening and closing ---- */

/* The partition of all SM groups is the one that most clients have. Published is only that the
 * results of a split may be described, so a driver may refuse the unsplit device, and take the
 * union of its groups. */
static cuda_result prove_whole(struct partition_table *partitions)
{
    struct sm_group_set all = {{0}};
    struct partition *made;
    for (uint32_t i = 0; i < partitions->count; i++)
        sm_group_set_add(&all, i);
    cuda_result result = partition_make(partitions, &all, &made);
    if (result != CUDA_OK && !cuda_driver_error_is_sticky(result)) {
        partitions->whole_refused = true;
        result = partition_make(partitions, &all, &made);
    }
    if (result == CUDA_OK) {
        partition_publish(partitions, made);
        partition_put(partitions, made);
    }
    return result;
}

uint32_t partition_table_open(struct partition_table *partitions, const struct gpu *gpu,
                              struct error *why)
{
    *partitions = (struct partition_table){.gpu = gpu, .kept_max = PARTITIONS_KEPT};
    pthread_mutex_init(&partitions->lock, NULL);
    if (!cuda_driver_has_green_contexts(gpu->cuda)) {
        note_unsupported(partitions, MESSAGE_TEXT(partitions_driver));
        return 0;
    }
    bool divided = false;
    cuda_result result =
        gpu->cuda->cuDeviceGetDevResource(gpu->handle, &partitions->whole, CUDA_RESOURCE_SM);
    if (result == CUDA_OK) {
        partitions->total = partitions->whole.sm.sm_count;
        result = split_device(partitions);
    }
    if (result == CUDA_OK) {
        partitions->supported = true;
        find_balanced(partitions);
        divided = true;
        result = prove_whole(partitions);
    }
    if (result != CUDA_OK && cuda_driver_error_is_sticky(result)) {
        partition_table_close(partitions);
        return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(sm_groups_driver),
                         cuda_driver_error_sentence(result));
    }
    if (result == CUDA_ERR_NOT_SUPPORTED)
        note_unsupported(partitions, MESSAGE_TEXT(partitions_device));
    else if (result != CUDA_OK)
        note_refused(partitions, divided, result);
    return 0;
}

void partition_table_close(struct partition_table *partitions)
{
    if (!partitions->gpu)
        return;
    while (partitions->list) {
        struct partition *gone = partitions->list;
        partitions->list = gone->next;
        partition_destroy(partitions, gone);
    }
    free(partitions->sm_groups);
    partitions->sm_groups = NULL;
    pthread_mutex_destroy(&partitions->lock);
    partitions->gpu = NULL;
}
