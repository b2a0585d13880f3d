/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_limits.h"

#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "common/ipc/timeline.h"
#include "server/worker/control/control_trace.h"
#include "server/worker/sharing/stream_priority.h"
#include "server/worker/sharing/client_partition.h"

int control_limits_answer(const struct request *request, const struct client *client)
{
    struct worker *worker = request->worker;
    struct placement_view view;
    placement_view(&worker->places, &client->place, timeline_now(), &view);
    struct proto_worker_attached attached = {
        .multiprocessors = view.max_multiprocessors,
        .partitioned = worker->partitions.supported,
    };
    _Static_assert(sizeof attached.sm_groups == sizeof view.sm_groups.bits, "the same SM groups");
    memcpy(attached.sm_groups, view.sm_groups.bits, sizeof attached.sm_groups);
    return request_answer(request, PROTO_WORKER_ATTACHED, &attached);
}

/* Where multiprocessors can't be divided, a limit of them is enforced as a share of time. */
static struct scheduler_limits time_limits(const struct worker *worker,
                                           const struct proto_allowance *allowance)
{
    return (struct scheduler_limits){
        .request = (uint32_t)allowance->time.request,
        .limit = (uint32_t)allowance->time.limit,
        .duty = worker->partitions.supported ? PLAN_WHOLE : (uint32_t)allowance->threads.limit,
        .level = allowance->priority};
}

/* Moves a client to where it belongs now, if there is room for it. */
static uint32_t apply_placement(struct worker *worker, struct client *client)
{
    struct partition *to;
    uint32_t error = control_limits_make_partitions(worker);
    pthread_mutex_lock(&client->lock);
    enum placement_answer said = placement_apply(&worker->places, &client->place, &to);
    if (said == PLACEMENT_MOVE)
        client_partition_move(worker, client, to);
    struct partition *at = client->shared.partition;
    pthread_mutex_unlock(&client->lock);
    if (!error && at)
        error = control_limits_prepare_streams(worker, at, client->streams[0].priority, 1);
    return said == PLACEMENT_HOLD && error ? error : 0;
}

uint32_t control_limits_take(struct worker *worker, struct client *client,
                             const struct proto_worker_attach *wanted, struct error *why)
{
    struct scheduler_limits time = time_limits(worker, &wanted->allowance);
    struct placement_view view;
    uint32_t error =
        placement_add(&worker->places, &client->place, (uint32_t)wanted->allowance.threads.request,
                      (uint32_t)wanted->allowance.threads.limit, why);
    if (error)
        return error;
    placement_view(&worker->places, &client->place, timeline_now(), &view);
    error = gate_add(&worker->gate, client, &time, &view.sm_groups, why);
    if (error) {
        placement_remove(&worker->places, &client->place);
        return error;
    }
    gate_set_owner(&worker->gate, client, wanted->owner);
    /* Other clients' work may have moved this one before the gate knew it. */
    placement_notify(&worker->places, &client->place);
    error = apply_placement(worker, client);
    if (error) {
        error_set(why, error, MESSAGE_TEXT(partition_none), error_sentence(error));
        control_limits_give_back(worker, client);
    }
    return error;
}

void control_limits_give_back(struct worker *worker, struct client *client)
{
    gate_remove(&worker->gate, client);
    placement_remove(&worker->places, &client->place);
    worker_reschedule(worker);
    if (client->shared.partition)
        partition_put(&worker->partitions, client->shared.partition);
    client->shared.partition = NULL;
}

static uint32_t change_limits(struct worker *worker, struct client *client,
                              const struct proto_worker_limits *wanted, struct error *why)
{
    /* Read without locks: only this thread changes requests and limits. */
    struct scheduler_limits old_time = client->gate.scheduled.limits;
    uint32_t old_request = client->place.allocation.request,
             old_limit = client->place.allocation.limit;
    struct scheduler_limits time = time_limits(worker, &wanted->allowance);
    struct error unused;
    uint32_t error = placement_update(&worker->places, &client->place,
                                      (uint32_t)wanted->allowance.threads.request,
                                      (uint32_t)wanted->allowance.threads.limit, why);
    if (error)
        return error;
    error = gate_set_limits(&worker->gate, client, &time, why);
    if (!error) {
        error = apply_placement(worker, client);
        if (error) {
            gate_set_limits(&worker->gate, client, &old_time, &unused);
            error_set(why, error, MESSAGE_TEXT(partition_none), error_sentence(error));
        }
    }
    if (error) {
        placement_update(&worker->places, &client->place, old_request, old_limit, &unused);
        apply_placement(worker, client);
        return error;
    }
    client->control.priority = wanted->allowance.priority;
    control_limits_assign_priorities(worker);
    return 0;
}

int control_limits_change(struct request *request)
{
    struct error why;
    uint32_t error = change_limits(request->worker, request->client, request->body, &why);
    worker_reschedule(request->worker);
    return error ? request_refuse_why(request, &why)
                 : control_limits_answer(request, request->client);
}

int control_limits_schedule(struct request *request)
{
    struct worker *worker = request->worker;
    const struct proto_worker_schedule *wanted = request->body;
    struct scheduler_schedule schedule;
    struct error why;
    scheduler_defaults(&schedule);
    schedule.mode = (enum proto_mode)wanted->mode;
    schedule.precision = wanted->precision;
    schedule.lease_ns = wanted->lease;
    schedule.quantum_ns = wanted->quantum;
    uint32_t refused = gate_set_schedule(&worker->gate, &schedule, &why);
    worker_reschedule(worker);
    if (!refused)
        control_trace_mode(worker, wanted->mode);
    return refused ? request_refuse_why(request, &why) : request_done(request);
}

/* ---- partitions ---- */

/* Rings keep their CUstream when their work is done, for the next time. */
static void leave_old_partitions(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        pthread_mutex_lock(&client->lock);
        stream_pool_leave(&worker->pool, client);
        pthread_mutex_unlock(&client->lock);
    }
}

/* Drops partitions that no client has: all of them, or those that are too many to keep. Returns
 * whether some are left, since their work is not done. */
static bool drop_unused(struct worker *worker, bool all)
{
    struct partition *partition;
    while ((partition = partition_take_unused(&worker->partitions, all))) {
        if (!stream_pool_drained(&worker->pool, partition))
            leave_old_partitions(worker);
        if (!stream_pool_drained(&worker->pool, partition)) {
            partition_return(&worker->partitions, partition);
            return true;
        }
        stream_pool_drop(&worker->pool, partition);
        partition_destroy(&worker->partitions, partition);
    }
    return false;
}

/* Partitions kept for the next time cost the device sub-contexts and memory. If it has no more of
 * these, the next time is less important than now. */
static uint32_t get_partition(struct worker *worker, const struct sm_group_set *sm_groups,
                              struct partition **partition)
{
    uint32_t error = partition_get(&worker->partitions, sm_groups, partition);
    if (!error)
        return 0;
    drop_unused(worker, true);
    return partition_get(&worker->partitions, sm_groups, partition);
}

/* Open streams of a client that are to run on a partition, by the driver's number of their
 * priority. */
static uint32_t count_open(struct client *client, const struct partition *partition,
                           int32_t priority)
{
    uint32_t open = 0;
    pthread_mutex_lock(&client->lock);
    for (uint32_t i = 0; client->shared.partition == partition && i < client->stream_count; i++)
        open += client->streams[i].state == STREAM_OPEN && client->streams[i].priority == priority;
    pthread_mutex_unlock(&client->lock);
    return open;
}

/* Makes CUstreams; if there are no more queues, those of rings that have nothing in flight make
 * way. */
static cuda_result prepare_streams(struct worker *worker, struct partition *partition,
                                   int32_t priority, uint32_t count)
{
    cuda_result made = stream_pool_prepare(&worker->pool, partition, priority, count);
    if (made == CUDA_ERR_NOT_READY) {
        for (uint32_t i = 0; i < worker->client_count; i++) {
            pthread_mutex_lock(&worker->clients[i]->lock);
            stream_pool_release_idle(&worker->pool, worker->clients[i]);
            pthread_mutex_unlock(&worker->clients[i]->lock);
        }
        made = stream_pool_prepare(&worker->pool, partition, priority, count);
    }
    if (cuda_driver_error_is_sticky(made))
        worker_fail(worker, made, "making a stream");
    return made;
}

uint32_t control_limits_prepare_streams(struct worker *worker, struct partition *partition,
                                        int32_t priority, uint32_t more)
{
    for (uint32_t i = 0; i < worker->client_count; i++)
        more += count_open(worker->clients[i], partition, priority);
    cuda_result made = prepare_streams(worker, partition, priority, more);
    /* Fewer than wanted are shared; a partition without any is of no use. */
    return made == CUDA_OK || stream_pool_has(&worker->pool, partition)
               ? 0
               : error_from_cuda((int)made);
}

void control_limits_assign_priorities(struct worker *worker)
{
    stream_priority_assign(worker);
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        pthread_mutex_lock(&client->lock);
        struct partition *partition = client->shared.partition;
        int32_t priority = client->streams[0].priority;
        pthread_mutex_unlock(&client->lock);
        /* Without one of its priority a stream runs at another's, until there is one. */
        if (partition)
            prepare_streams(worker, partition, priority, 1);
    }
}

/* Open streams of one client, of any priority. */
static uint32_t count_streams(struct client *client)
{
    uint32_t open = 0;
    pthread_mutex_lock(&client->lock);
    for (uint32_t i = 0; i < client->stream_count; i++)
        open += client->streams[i].state == STREAM_OPEN;
    pthread_mutex_unlock(&client->lock);
    return open;
}

uint32_t control_limits_make_partitions(struct worker *worker)
{
    struct sm_group_set sm_groups;
    struct placement *place;
    while ((place = placement_next_to_make(&worker->places, &sm_groups))) {
        struct client *client = container_of(place, struct client, place);
        struct partition *partition;
        uint32_t error = get_partition(worker, &sm_groups, &partition);
        if (error) {
            placement_made(&worker->places, place, NULL);
            return error;
        }
        int32_t priority = client_partition_priority(worker, client, &sm_groups);
        error = control_limits_prepare_streams(worker, partition, priority, count_streams(client));
        if (error) {
            partition_put(&worker->partitions, partition);
            placement_made(&worker->places, place, NULL);
            return error;
        }
        placement_made(&worker->places, place, partition);
    }
    return 0;
}

bool control_limits_finish(struct worker *worker)
{
    struct stream_wish wish;
    uint32_t there;
    if (stream_pool_take_wish(&worker->pool, &wish, &there))
        prepare_streams(worker, wish.partition, wish.priority, there + 1);
    uint32_t error = control_limits_make_partitions(worker);
    if (error && error != worker->placement_error)
        log_warning(MESSAGE_TEXT(partition_later), worker->device.info.device,
                    error_sentence(error));
    worker->placement_error = error;
    return drop_unused(worker, false) || error;
}
