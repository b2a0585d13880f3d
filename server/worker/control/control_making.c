/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_making.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/control/control_call.h"
#include "server/worker/control/request.h"
#include "server/worker/sharing/client_partition.h"
#include "server/worker/worker.h"

#define AGAIN_NS UNITS_SECOND

/* How often the end of a window is looked for by a call that needs none. */
#define WINDOW_PAUSE_NS UNITS_MS
/* After a call that needs none others have the driver for so many times as long, since nobody waits
 * for a CUstream. */
#define REST_TIMES 9

enum making_kind { MAKE_PARTITION, PREPARE_PARTITION, MAKE_STREAMS, DROP_PARTITIONS };

struct making {
    struct control_call open; /* of one that needs no window */
    struct quiet_call call;   /* of any other */
    struct worker *worker;
    struct making *next;
    enum making_kind kind;
    struct sm_group_set sm_groups; /* MAKE_PARTITION, PREPARE_PARTITION */
    struct stream_order order;     /* MAKE_PARTITION: of the partition, once it is made */
    bool wished;
    bool left; /* DROP_PARTITIONS: some could not go */
    cuda_result result;
};

/* ---- the part of the thread that makes the calls ---- */

/* Partitions that no client has any more have drained, unless a ring is bound there. Returns
 * whether all are gone that are too many; *gone is how many went. */
static bool drop_unused(struct worker *worker, bool all, uint32_t *gone)
{
    struct partition *partition;
    *gone = 0;
    while ((partition = partition_take_unused(&worker->partitions, all))) {
        if (!stream_pool_drop(&worker->pool, partition)) {
            partition_return(&worker->partitions, partition);
            return false;
        }
        partition_destroy(&worker->partitions, partition);
        ++*gone;
    }
    return true;
}

/* A partition is found by the submitter as soon as it is published, so it has CUstreams before. */
static cuda_result make_whole_partition(struct worker *worker, struct making *making)
{
    struct partition *made;
    cuda_result result = partition_make(&worker->partitions, &making->sm_groups, &made);
    if (result != CUDA_OK)
        return result;
    result = stream_pool_add_partition(&worker->pool, made);
    struct stream_order order = making->order;
    order.partition = made;
    if (result == CUDA_OK)
        result = stream_pool_extend(&worker->pool, &order);
    if (result != CUDA_OK && !stream_pool_has(&worker->pool, made, order.priority)) {
        stream_pool_drop(&worker->pool, made);
        partition_destroy(&worker->partitions, made);
        return result;
    }
    partition_publish(&worker->partitions, made);
    making->order.partition = made;
    return cuda_driver_error_is_sticky(result) ? result : CUDA_OK;
}

/* Partitions kept for the next time cost the device sub-contexts and memory. If it has no more of
 * these, the next time is less important than now. */
static cuda_result make_partition(struct worker *worker, struct making *making)
{
    uint32_t gone;
    making->order.partition = partition_find(&worker->partitions, &making->sm_groups);
    if (making->order.partition)
        return CUDA_OK;
    cuda_result result = make_whole_partition(worker, making);
    if (result == CUDA_OK || cuda_driver_error_is_sticky(result))
        return result;
    stream_pool_reap(&worker->pool);
    drop_unused(worker, true, &gone);
    return make_whole_partition(worker, making);
}

static cuda_result end_probe(struct worker *worker, enum probed_call call, bool made)
{
    bool found;
    cuda_result result = call_probe_end(&worker->call_probe, &worker->gpu, call, made, &found);
    if (found && call == PROBED_CREATION)
        log_notice(MESSAGE_TEXT(streams_made_openly), worker->gpu.info.device);
    else if (found)
        log_notice(MESSAGE_TEXT(partitions_ended_openly), worker->gpu.info.device);
    return result;
}

/* In a window; the first CUstreams show whether the next ones need one. */
static cuda_result make_streams(struct worker *worker, struct stream_order *order)
{
    cuda_result result = CUDA_OK;
    stream_pool_reap(&worker->pool);
    if (order->count && call_probe_begin(&worker->call_probe, &worker->gpu, PROBED_CREATION)) {
        cuda_result made = stream_pool_extend_once(&worker->pool, order);
        result = end_probe(worker, PROBED_CREATION, order->made > 0);
        if (made != CUDA_OK)
            result = made;
    }
    return result == CUDA_OK ? stream_pool_extend(&worker->pool, order) : result;
}

/* In a window. */
static cuda_result drop_partitions(struct worker *worker)
{
    uint32_t gone;
    stream_pool_reap(&worker->pool);
    bool probes = partition_too_many(&worker->partitions) &&
                  call_probe_begin(&worker->call_probe, &worker->gpu, PROBED_DESTRUCTION);
    drop_unused(worker, false, &gone);
    return probes ? end_probe(worker, PROBED_DESTRUCTION, gone > 0) : CUDA_OK;
}

static void see_result(const struct making *making)
{
    if (cuda_driver_error_is_sticky(making->result))
        worker_fail(making->worker, making->result, CONTEXT_LOSS_MAKING);
}

static void make_wanted(struct quiet_call *call)
{
    struct making *making = container_of(call, struct making, call);
    struct worker *worker = making->worker;
    if (making->kind == MAKE_PARTITION)
        making->result = make_partition(worker, making);
    else if (making->kind == PREPARE_PARTITION)
        making->result =
            usual_partitions_make_one(&worker->partitions, &worker->pool, &making->sm_groups);
    else if (making->kind == MAKE_STREAMS)
        making->result = make_streams(worker, &making->order);
    else
        making->result = drop_partitions(worker);
    see_result(making);
}

/* Whether calls of that kind need no window on this driver. */
static bool is_open(const struct worker *worker, enum making_kind kind)
{
    const struct call_probe *probe = &worker->call_probe;
    return kind == MAKE_STREAMS      ? call_probe_is_free(probe, PROBED_CREATION)
           : kind == DROP_PARTITIONS ? call_probe_is_free(probe, PROBED_DESTRUCTION)
                                     : false;
}

/* One CUstream, or the partitions that can go, beside clients' work. */
static bool make_openly(struct driver_call *call)
{
    struct making *making = container_of(call, struct making, open.call);
    struct worker *worker = making->worker;
    uint64_t begun = clock_now();
    uint32_t gone;
    if (begun < worker->make_openly_at || !quiet_calls_work_try(&worker->quiet_calls)) {
        call->not_before = max(begun + WINDOW_PAUSE_NS, worker->make_openly_at);
        return true;
    }
    making->order.destroys = call_probe_is_free(&worker->call_probe, PROBED_DESTRUCTION);
    if (making->kind == MAKE_STREAMS)
        making->result = stream_pool_extend_once(&worker->pool, &making->order);
    else
        making->left = !drop_unused(worker, false, &gone);
    quiet_calls_work_end(&worker->quiet_calls);
    see_result(making);
    uint64_t now = clock_now();
    worker->make_openly_at =
        now + (making->result == CUDA_OK ? REST_TIMES * (now - begun) : AGAIN_NS);
    call->not_before = worker->make_openly_at;
    return making->kind == MAKE_STREAMS && making->result == CUDA_OK && making->order.count;
}

/* ---- afterwards ---- */

static void forget_making(struct worker *worker, const struct making *making)
{
    struct making **link = &worker->makings;
    while (*link != making)
        link = &(*link)->next;
    *link = making->next;
}

/* The client may have left, or may need another partition by now. */
static void end_partition(struct worker *worker, const struct making *making)
{
    struct client *client = worker_find_client(worker, making->call.caller.client);
    uint32_t error = error_from_cuda((int)making->result);
    if (client) {
        client->control.making--;
        client->control.making_error = error;
    }
    if (error && error != worker->placement_error)
        log_warning(MESSAGE_TEXT(partition_later), worker->gpu.info.device, error_sentence(error));
    worker->placement_error = error;
    if (error)
        worker->make_again = clock_now() + AGAIN_NS;
    if (client)
        placement_made(&worker->places, &client->place, making->order.partition);
    else if (making->order.partition)
        partition_put(&worker->partitions, making->order.partition);
}

static void finish_making(struct worker *worker, const struct making *making)
{
    forget_making(worker, making);
    if (making->kind == MAKE_PARTITION)
        end_partition(worker, making);
    else if (making->kind == MAKE_STREAMS)
        partition_put(&worker->partitions, making->order.partition);
    else if (making->kind == PREPARE_PARTITION && making->result != CUDA_OK)
        worker->sizes = (struct usual_sizes){.next = 0}; /* clients have what is left */
    if (making->wished)
        stream_pool_grant(&worker->pool);
}

static int end_making(struct worker *worker, struct quiet_call *call)
{
    struct making *making = container_of(call, struct making, call);
    finish_making(worker, making);
    free(making);
    return 0;
}

/* ---- what is asked for ---- */

/* NULL: no memory. */
static struct making *making_new(struct worker *worker, enum making_kind kind)
{
    struct making *making = calloc(1, sizeof *making);
    if (!making)
        return NULL;
    making->worker = worker;
    making->kind = kind;
    making->call.make = make_wanted;
    making->call.end = end_making;
    /* Nobody's; a window that drains everybody's streams costs more than they bring. */
    making->call.patient = kind != MAKE_PARTITION;
    making->call.caller.level = SCHEDULER_LEVELS;
    return making;
}

static void defer_making(struct worker *worker, struct making *making)
{
    making->next = worker->makings;
    worker->makings = making;
    quiet_calls_defer(&worker->quiet_calls, &making->call, making->kind == MAKE_PARTITION);
}

/* Rings that are bound to a partition's CUstreams, and have nothing there, are unbound in a window.
 */
static void drop_in_window(struct worker *worker)
{
    struct making *making = making_new(worker, DROP_PARTITIONS);
    if (making)
        defer_making(worker, making);
}

static int end_openly(struct control_call *call)
{
    const struct making *making = container_of(call, struct making, open);
    finish_making(making->worker, making);
    if (making->left)
        drop_in_window(making->worker);
    return 0;
}

/* Nobody waits for it: at once where no window is needed, else in the next one. */
static void leave_making(struct worker *worker, struct making *making)
{
    const struct request nobodys = {.worker = worker};
    if (!is_open(worker, making->kind)) {
        defer_making(worker, making);
        return;
    }
    making->next = worker->makings;
    worker->makings = making;
    control_call_open(&making->open, &nobodys, make_openly, end_openly);
    control_call_leave(&making->open);
}

bool control_making_start(struct worker *worker)
{
    struct sm_group_set sm_groups;
    struct placement *place;
    if (clock_now() < worker->make_again)
        return true;
    while ((place = placement_next_to_make(&worker->places, &sm_groups))) {
        struct client *client = container_of(place, struct client, place);
        struct making *making = making_new(worker, MAKE_PARTITION);
        if (!making) {
            placement_made(&worker->places, place, NULL);
            worker->make_again = clock_now() + AGAIN_NS;
            return true;
        }
        making->call.caller = request_caller_of(client);
        making->sm_groups = sm_groups;
        making->order =
            (struct stream_order){.priority = client_partition_priority(worker, client, &sm_groups),
                                  .count = USUAL_PARTITIONS_STREAMS,
                                  .destroys = true};
        client->control.making++;
        defer_making(worker, making);
    }
    return false;
}

static bool is_asked_for(const struct worker *worker, enum making_kind kind,
                         const struct partition *partition, int32_t priority)
{
    for (const struct making *making = worker->makings; making; making = making->next)
        if (making->kind == kind && making->order.partition == partition &&
            making->order.priority == priority)
            return true;
    return false;
}

/* Returns false if nothing was asked for. */
static bool ask_for_streams(struct worker *worker, const struct sm_group_set *sm_groups,
                            int32_t priority, uint32_t count, bool wished)
{
    struct partition *partition = partition_find(&worker->partitions, sm_groups);
    struct making *making = NULL;
    if (partition && !is_asked_for(worker, MAKE_STREAMS, partition, priority))
        making = making_new(worker, MAKE_STREAMS);
    if (!making) {
        if (partition)
            partition_put(&worker->partitions, partition);
        return false;
    }
    making->order = (struct stream_order){
        .partition = partition, .priority = priority, .count = count, .destroys = true};
    making->wished = wished;
    leave_making(worker, making);
    return true;
}

void control_making_stream(struct worker *worker, struct partition *partition, int32_t priority)
{
    if (!stream_pool_has(&worker->pool, partition, priority))
        ask_for_streams(worker, &partition->sm_groups, priority, 1, false);
}

/* One after the other: each is a call of its own, so that others' calls come between. */
static void prepare_next(struct worker *worker)
{
    struct sm_group_set sm_groups;
    if (is_asked_for(worker, PREPARE_PARTITION, NULL, 0) ||
        !usual_partitions_next(&worker->partitions, &worker->sizes, &sm_groups))
        return;
    struct making *making = making_new(worker, PREPARE_PARTITION);
    if (!making)
        return;
    making->sm_groups = sm_groups;
    defer_making(worker, making);
}

void control_making_sizes(struct worker *worker, const uint32_t *sizes)
{
    worker->sizes.next = 0;
    memcpy(worker->sizes.of, sizes, sizeof worker->sizes.of);
}

void control_making_tidy(struct worker *worker)
{
    prepare_next(worker);
    struct stream_wish wish;
    if (stream_pool_take_wish(&worker->pool, &wish) &&
        !ask_for_streams(worker, &wish.sm_groups, wish.priority, wish.count, true))
        stream_pool_grant(&worker->pool);
    if (!partition_too_many(&worker->partitions) || is_asked_for(worker, DROP_PARTITIONS, NULL, 0))
        return;
    struct making *making = making_new(worker, DROP_PARTITIONS);
    if (making)
        leave_making(worker, making);
}
