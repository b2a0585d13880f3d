/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_trace.h"

#include <errno.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/messages.h"
#include "server/worker/trace.h"
#include "server/worker/control/reply.h"
#include "server/worker/sharing/client_partition.h"

void control_trace_mode(struct worker *worker, uint32_t mode)
{
    uint64_t now = clock_now();
    struct proto_trace_record record = {.kind = TRACE_MODE, .value = mode, .from = now, .to = now};
    trace_add(&worker->trace, &record);
}

/* Records where each client runs as the trace begins. */
static void write_shares(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        client_lock(client);
        client_partition_trace(worker, client);
        pthread_mutex_unlock(&client->lock);
    }
}

/* Records the clients that wait for multiprocessors as the trace ends. */
static void write_held(struct worker *worker)
{
    uint64_t now = clock_now();
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct placement_view view;
        placement_view(&worker->places, &worker->clients[i]->place, now, &view);
        if (view.held_since)
            client_partition_trace_held(worker, worker->clients[i], view.held_since, now);
    }
}

static int refuse_memory(const struct request *request, int result)
{
    const struct proto_worker_trace_start *wanted = request->body;
    if (wanted->lost_at && result == -EINVAL)
        return request_refuse(request, MESSAGE(trace_memory_foreign));
    uint32_t number = result == -EBADF || result == -EINVAL ? PROTO_ERROR_INVALID_VALUE
                                                            : error_from_errno(result);
    return request_refuse(request, number, MESSAGE_TEXT(trace_memory_unusable));
}

int control_trace_start(struct request *request)
{
    struct worker *worker = request->worker;
    const struct proto_worker_trace_start *wanted = request->body;
    const struct partition_table *partitions = &worker->partitions;
    struct trace_device device = {
        .mode = worker->gate.scheduler.schedule.mode, /* only this thread changes it */
        .sm_groups = partitions->count,
        .sm_group_multiprocessors = partitions->sm_group_size,
        .remainder = partitions->rest,
    };
    /* Before the trace is on: work that ran until now is counted, and stays out of the trace. */
    meter_trace_begin(&worker->meter);
    int fd = channel_take_fd(request->message, 0);
    int started = wanted->lost_at ? trace_go_on(&worker->trace, fd, wanted->count, wanted->lost_at)
                                  : trace_begin(&worker->trace, fd, wanted->count, &device);
    if (started < 0)
        return refuse_memory(request, started);
    if (wanted->lost_at) {
        trace_add_recovery(&worker->trace, 0);
        /* The header has the mode of the trace's beginning, and what came in between is unknown. */
        control_trace_mode(worker, device.mode);
    }
    gate_trace_started(&worker->gate);
    write_shares(worker);
    return request_done(request);
}

int control_trace_stop(struct request *request)
{
    struct worker *worker = request->worker;
    gate_trace_stopping(&worker->gate);
    write_held(worker);
    meter_trace_end(&worker->meter);
    trace_end(&worker->trace);
    return request_done(request);
}
