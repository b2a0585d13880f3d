/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "common/ipc/shm.h"
#include "server/supervisor/loop/job.h"
#include "server/supervisor/device/device.h"
#include "server/supervisor/device/device_request.h"

/* A worker that does not answer must hold up neither this trace's asker nor the next trace. */
#define ANSWER_TIMEOUT_MS 5000
#define CLIENTS_MAX       65536

/* WAITING: the worker is lost, and there is no other yet. */
enum tracing_state {
    TRACING_STARTING,
    TRACING_RUNNING,
    TRACING_WAITING,
    TRACING_STOPPING,
    TRACING_ENDED
};

struct tracing {
    struct job job;
    struct job_client jobs;
    bool filling; /* the job is under way and uses the memory */
    struct device *device;
    enum tracing_state state;
    uv_timer_t timer;
    bool closed;          /* the timer is closed */
    unsigned outstanding; /* requests to the worker and the job that have not ended */
    bool hurried;         /* the asker wants it to end before its time */
    struct shm memory;
    uint64_t milliseconds;
    uint64_t began, ends; /* CLOCK_MONOTONIC, ns */
    /* When the last worker was lost that had the trace; 0: the present one has it. */
    uint64_t lost_at;
    char by[64];
    trace_done *done; /* NULL: it was called, or the trace was abandoned */
    void *context;
    struct trace_client *clients;
    size_t count, room;
};

static void tracing_free_if_over(struct tracing *tracing)
{
    if (!tracing->closed || tracing->outstanding)
        return;
    job_client_close(&tracing->jobs);
    free(tracing->clients);
    free(tracing);
}

static void timer_closed(uv_handle_t *handle)
{
    struct tracing *tracing = handle->data;
    tracing->closed = true;
    tracing_free_if_over(tracing);
}

/* trouble: why the trace ended before its time, or NULL. */
static void hand_over(struct tracing *tracing, const char *trouble)
{
    struct trace trace = {.device = tracing->device->index,
                          .milliseconds = tracing->milliseconds,
                          .memory = shm_readonly_fd(&tracing->memory),
                          .trouble = trouble,
                          .clients = tracing->clients,
                          .client_count = tracing->count};
    if (trace.memory < 0) {
        tracing->done(tracing->context, MESSAGE(trace_no_descriptor), NULL);
        return;
    }
    tracing->done(tracing->context, 0, "", &trace);
    close(trace.memory);
}

/* error: 0 and a trace, which text says was cut short (NULL: it was not); or an error number, which
 * text explains, and no trace. */
static void tracing_finish(struct tracing *tracing, uint32_t error, const char *text)
{
    tracing->state = TRACING_ENDED;
    tracing->device->tracing = NULL;
    if (tracing->done && error)
        tracing->done(tracing->context, error, text, NULL);
    else if (tracing->done)
        hand_over(tracing, text);
    tracing->done = NULL;
    if (!tracing->filling)
        shm_release(&tracing->memory);
    uv_close((uv_handle_t *)&tracing->timer, timer_closed);
}

/* ---- the worker ---- */

static const struct channel_packet stop_request = {.opcode = PROTO_WORKER_TRACE_STOP};

/* The worker has ended the trace, in its time or because it was hurried. */
static void finish_well(struct tracing *tracing)
{
    struct error early;
    if (!tracing->hurried) {
        tracing_finish(tracing, 0, NULL);
        return;
    }
    error_set(&early, MESSAGE(trace_hurried), (double)(tracing->ends - tracing->began) / 1e9,
              (double)tracing->milliseconds / 1e3);
    log_notice(MESSAGE_TEXT(log_trace_over), tracing->device->index, tracing->by, early.text);
    tracing_finish(tracing, 0, early.text);
}

static void stop_answered(void *context, const struct worker_answer *answer)
{
    struct tracing *tracing = context;
    tracing->outstanding--;
    if (tracing->state == TRACING_STOPPING && answer->outcome == WORKER_ANSWERED)
        finish_well(tracing);
    else if (tracing->state == TRACING_STOPPING)
        tracing_finish(tracing, 0, MESSAGE_TEXT(trace_worker_ended));
    tracing_free_if_over(tracing);
}

static void finish_without_worker(struct tracing *tracing)
{
    struct error why;
    error_set(&why, MESSAGE(trace_no_worker), (double)(tracing->lost_at - tracing->began) / 1e9,
              (double)tracing->milliseconds / 1e3);
    log_notice(MESSAGE_TEXT(log_trace_over), tracing->device->index, tracing->by, why.text);
    tracing_finish(tracing, 0, why.text);
}

static void on_time(uv_timer_t *timer)
{
    struct tracing *tracing = timer->data;
    if (tracing->state == TRACING_STARTING) {
        device_request(tracing->device, &stop_request, NULL, NULL);
        tracing_finish(tracing, MESSAGE(trace_start_late));
    } else if (tracing->state == TRACING_WAITING) {
        finish_without_worker(tracing);
    } else if (tracing->state == TRACING_STOPPING) {
        tracing_finish(tracing, 0, MESSAGE_TEXT(trace_stop_late));
    } else {
        tracing->state = TRACING_STOPPING;
        tracing->outstanding++;
        uv_timer_start(timer, on_time, ANSWER_TIMEOUT_MS, 0);
        if (device_request(tracing->device, &stop_request, stop_answered, tracing) == 0)
            return;
        tracing->outstanding--;
        tracing_finish(tracing, 0, MESSAGE_TEXT(trace_worker_ended));
    }
}

static void start_answered(void *context, const struct worker_answer *answer)
{
    struct tracing *tracing = context;
    tracing->outstanding--;
    if (tracing->state == TRACING_STARTING && answer->outcome == WORKER_ANSWERED) {
        tracing->state = TRACING_RUNNING;
        log_notice(MESSAGE_TEXT(log_trace), tracing->device->index,
                   (double)tracing->milliseconds / 1e3, tracing->by);
        tracing->began = clock_now();
        tracing->ends = tracing->began + (tracing->hurried ? 0 : tracing->milliseconds * UNITS_MS);
        uv_timer_start(&tracing->timer, on_time, tracing->hurried ? 0 : tracing->milliseconds, 0);
    } else if (tracing->state == TRACING_STARTING) {
        bool refused = answer->outcome == WORKER_REFUSED;
        tracing_finish(tracing, refused ? answer->error : PROTO_ERROR_DEVICE_NOT_READY,
                       refused ? answer->text : MESSAGE_TEXT(trace_never_begun));
    }
    tracing_free_if_over(tracing);
}

/* Asks the worker to write into the trace's memory. lost_at: 0 to begin anew. */
static int worker_ask(struct tracing *tracing, uint64_t lost_at, worker_link_reply *answered)
{
    struct proto_worker_trace_start body = {.count = PROTO_TRACE_BYTES, .lost_at = lost_at};
    struct channel_packet request = {.opcode = PROTO_WORKER_TRACE_START,
                                     .body = &body,
                                     .fds = &tracing->memory.fd,
                                     .fd_count = 1};
    tracing->outstanding++;
    int result = device_request(tracing->device, &request, answered, tracing);
    if (result < 0)
        tracing->outstanding--;
    return result;
}

/* ---- the next worker ---- */

void tracing_lost(struct tracing *tracing)
{
    if (!tracing)
        return;
    if (tracing->state == TRACING_STARTING) {
        tracing_finish(tracing, PROTO_ERROR_DEVICE_NOT_READY, MESSAGE_TEXT(trace_never_begun));
    } else if (tracing->state == TRACING_STOPPING || tracing->device->stopping) {
        tracing_finish(tracing, 0, MESSAGE_TEXT(trace_worker_ended));
    } else {
        tracing->state = TRACING_WAITING;
        /* The worker in between may have ended before it went on with the trace. */
        if (!tracing->lost_at)
            tracing->lost_at = tracing->device->ended_at;
    }
}

/* A worker that is lost before it answers is one of several that the trace outlives. */
static void go_on_answered(void *context, const struct worker_answer *answer)
{
    struct tracing *tracing = context;
    bool under_way = tracing->state == TRACING_RUNNING || tracing->state == TRACING_STOPPING;
    tracing->outstanding--;
    if (answer->outcome == WORKER_ANSWERED)
        tracing->lost_at = 0;
    else if (under_way && answer->outcome == WORKER_REFUSED)
        tracing_finish(tracing, 0, answer->text);
    tracing_free_if_over(tracing);
}

void tracing_go_on(struct tracing *tracing)
{
    if (!tracing || tracing->state != TRACING_WAITING)
        return;
    /* The link's end tells of a worker that can't be asked. */
    if (worker_ask(tracing, tracing->lost_at, go_on_answered) == 0)
        tracing->state = TRACING_RUNNING;
}

/* ---- clients ---- */

void tracing_note(struct tracing *tracing, uint32_t number, const char *name, pid_t pid, uid_t uid)
{
    if (!tracing || tracing->count == CLIENTS_MAX)
        return;
    /* If memory is short the client shows with its number alone. */
    if (array_reserve(tracing->clients, tracing->room, tracing->count + 1) < 0)
        return;
    struct trace_client *client = &tracing->clients[tracing->count++];
    *client = (struct trace_client){.number = number, .pid = pid, .uid = uid};
    snprintf(client->name, sizeof client->name, "%s", name);
}

/* ---- its beginning and end ---- */

/* The memory is filled before it is used: if a page could not be had later, the worker would die of
 * it, and its context with it. */
static int memory_fill(struct job *job)
{
    const struct tracing *tracing = container_of(job, struct tracing, job);
    return fallocate(tracing->memory.fd, 0, 0, PROTO_TRACE_BYTES) < 0 ? -errno : 0;
}

static void memory_filled(struct job *job, int result)
{
    struct tracing *tracing = container_of(job, struct tracing, job);
    tracing->filling = false;
    tracing->outstanding--;
    if (tracing->state == TRACING_ENDED) {
        shm_release(&tracing->memory);
    } else if (result < 0) {
        tracing_finish(tracing, MESSAGE(trace_no_room));
    } else if (worker_ask(tracing, 0, start_answered) < 0) {
        tracing_finish(tracing, MESSAGE(trace_worker_stuck));
    }
    tracing_free_if_over(tracing);
}

uint32_t tracing_check(const struct device *device, struct error *why)
{
    if (device->state != DEVICE_READY)
        return device_refuse(device, why);
    if (!device->tracing)
        return 0;
    uint64_t now = clock_now();
    if (device->tracing->ends > now)
        return error_set(why, MESSAGE(trace_under_way), device->index, device->tracing->by,
                         (double)(device->tracing->ends - now) / 1e9);
    return error_set(why, MESSAGE(trace_ending), device->index, device->tracing->by);
}

uint32_t tracing_start(struct device *device, uint64_t milliseconds,
                       const struct trace_asker *asker, struct error *why)
{
    struct tracing *tracing = calloc(1, sizeof *tracing);
    int result = tracing ? job_client_open(&tracing->jobs, device->jobs, getuid()) : -ENOMEM;
    if (result == 0)
        result = shm_create(&tracing->memory, "gpushare-trace", PROTO_TRACE_BYTES);
    if (result < 0) {
        if (tracing)
            job_client_close(&tracing->jobs);
        free(tracing);
        return error_set(why, MESSAGE(trace_no_memory), PROTO_TRACE_BYTES >> 20, strerror(-result));
    }
    tracing->device = device;
    tracing->filling = true;
    tracing->milliseconds = milliseconds;
    tracing->ends = clock_now() + milliseconds * UNITS_MS;
    snprintf(tracing->by, sizeof tracing->by, "%s", asker->by);
    uv_timer_init(device->loop, &tracing->timer);
    tracing->timer.data = tracing;
    device->tracing = tracing;
    tracing->outstanding = 1;
    job_start(&tracing->job, &tracing->jobs, memory_fill, memory_filled);
    tracing->done = asker->done;
    tracing->context = asker->context;
    uv_timer_start(&tracing->timer, on_time, ANSWER_TIMEOUT_MS, 0);
    return 0;
}

bool tracing_is_for(const struct tracing *tracing, const void *context)
{
    return tracing && tracing->done && tracing->context == context;
}

void tracing_stop(struct tracing *tracing)
{
    if (tracing->state > TRACING_WAITING)
        return;
    tracing->hurried = true;
    tracing->ends = clock_now();
    if (tracing->state != TRACING_STARTING)
        uv_timer_start(&tracing->timer, on_time, 0, 0);
}

void tracing_abandon(struct tracing *tracing)
{
    tracing->done = NULL;
    device_request(tracing->device, &stop_request, NULL, NULL);
    tracing_finish(tracing, 0, NULL);
}
