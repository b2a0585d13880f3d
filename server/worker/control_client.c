/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/timeline.h"
#include "server/worker/control.h"
#include "server/worker/control_module.h"
#include "server/worker/control_stream.h"
#include "server/worker/control_trace.h"
#include "server/worker/level.h"
#include "server/worker/memory.h"
#include "server/worker/request.h"

/* ---- the client itself ---- */

static int answer_share(const struct request *request, const struct client *client)
{
    struct worker *worker = request->worker;
    struct place_view view;
    place_look(&worker->places, &client->place, timeline_now(), &view);
    struct proto_worker_attached attached = {
        .multiprocessors = view.most,
        .partitioned = worker->partitions.supported,
    };
    _Static_assert(sizeof attached.atoms == sizeof view.atoms.bits, "the same atoms");
    memcpy(attached.atoms, view.atoms.bits, sizeof attached.atoms);
    return request_answer(request, PROTO_WORKER_ATTACHED, &attached);
}

/* Where multiprocessors can't be divided, their limit holds as a part of the device's time. */
static struct scheduler_limits time_limits(const struct worker *worker, uint32_t threads,
                                           uint32_t time_request, uint32_t time_limit,
                                           uint32_t priority)
{
    return (struct scheduler_limits){.request = time_request,
                                     .limit = time_limit,
                                     .duty = worker->partitions.supported ? PLAN_WHOLE : threads,
                                     .level = priority};
}

/* Puts a client where it belongs now, if there is room for it. */
static uint32_t settle(struct worker *worker, struct client *client)
{
    struct partition *to;
    uint32_t error = control_make_places(worker);
    pthread_mutex_lock(&client->lock);
    enum place_answer said = place_settle(&worker->places, &client->place, &to);
    if (said == PLACE_MOVE)
        worker_move_client(worker, client, to);
    pthread_mutex_unlock(&client->lock);
    return said == PLACE_HOLD && error ? error : 0;
}

/* Gives a new client its share and shows it to the other threads. */
static uint32_t admit(struct worker *worker, struct client *client,
                      const struct proto_worker_attach *wanted, char *why, size_t why_size)
{
    struct scheduler_limits time =
        time_limits(worker, wanted->thread_percentage, wanted->time_request, wanted->time_limit,
                    wanted->priority);
    struct place_view view;
    if (place_add(&worker->places, &client->place, wanted->thread_request,
                  wanted->thread_percentage, why, why_size))
        return PROTO_ERROR_INVALID_VALUE;
    place_look(&worker->places, &client->place, timeline_now(), &view);
    if (gate_add(&worker->gate, client, &time, &view.atoms, why, why_size)) {
        place_remove(&worker->places, &client->place);
        return PROTO_ERROR_INVALID_VALUE;
    }
    gate_own(&worker->gate, client, wanted->owner);
    /* Others' work may have moved it while the gate did not know it. */
    place_tell(&worker->places, &client->place);
    int added = 0;
    uint32_t error = settle(worker, client);
    if (error) {
        snprintf(why, why_size, "no partition could be made");
    } else {
        added = worker_add_client(worker, client);
        level_apply(worker);
        if (added == 0)
            added = submitter_add(&worker->submitter, client);
        if (added == 0)
            return 0;
        snprintf(why, why_size, "attaching: %s", strerror(-added));
        error = error_from_errno(added);
    }
    worker_remove_client(worker, client);
    level_apply(worker);
    gate_remove(&worker->gate, client);
    place_remove(&worker->places, &client->place);
    if (client->partition)
        partition_put(&worker->partitions, client->partition);
    return error;
}

static int attach(struct request *request)
{
    struct worker *worker = request->worker;
    const struct proto_worker_attach *wanted = request->body;
    char why[SHARE_WHY];
    if (worker_find_client(worker, request->number))
        return request_refuse(request, PROTO_ERROR_INVALID_VALUE,
                              "a client with this number exists");
    int fds[4];
    for (unsigned i = 0; i < 4; i++)
        fds[i] = channel_take_fd(request->message, i);
    struct client *client = NULL;
    uint32_t error =
        client_create(&client, &worker->device, request->number, wanted, fds, why, sizeof why);
    if (error)
        return request_refuse(request, error, why);
    error = admit(worker, client, wanted, why, sizeof why);
    if (error) {
        client_destroy(client);
        return request_refuse(request, error, why);
    }
    return answer_share(request, client);
}

static uint32_t change(struct worker *worker, struct client *client,
                       const struct proto_worker_limits *wanted, char *why, size_t why_size)
{
    /* Only this thread changes what was asked. */
    struct scheduler_limits old_time = client->gate.scheduled.limits;
    uint32_t old_request = client->place.share.request, old_limit = client->place.share.limit;
    struct scheduler_limits time =
        time_limits(worker, wanted->thread_percentage, wanted->time_request, wanted->time_limit,
                    wanted->priority);
    char unused[SHARE_WHY];
    if (place_update(&worker->places, &client->place, wanted->thread_request,
                     wanted->thread_percentage, why, why_size))
        return PROTO_ERROR_INVALID_VALUE;
    uint32_t error = PROTO_ERROR_INVALID_VALUE;
    if (gate_update(&worker->gate, client, &time, why, why_size) == 0) {
        error = settle(worker, client);
        if (error) {
            gate_update(&worker->gate, client, &old_time, unused, sizeof unused);
            snprintf(why, why_size, "no partition could be made");
        }
    }
    if (error) {
        place_update(&worker->places, &client->place, old_request, old_limit, unused,
                     sizeof unused);
        settle(worker, client);
        return error;
    }
    client->priority = wanted->priority;
    level_apply(worker);
    return 0;
}

static int limits(struct request *request)
{
    char why[SCHEDULER_WHY];
    uint32_t error = change(request->worker, request->client, request->body, why, sizeof why);
    submitter_heed(&request->worker->submitter);
    return error ? request_refuse(request, error, why) : answer_share(request, request->client);
}

static int schedule(struct request *request)
{
    struct worker *worker = request->worker;
    const struct proto_worker_schedule *wanted = request->body;
    struct scheduler_settings settings;
    char why[SCHEDULER_WHY];
    scheduler_defaults(&settings);
    settings.mode = (enum scheduler_mode)wanted->mode;
    settings.precision = wanted->precision;
    settings.lease_ns = wanted->lease;
    settings.quantum_ns = wanted->quantum;
    int refused = gate_set(&worker->gate, &settings, why, sizeof why);
    submitter_heed(&worker->submitter);
    if (!refused)
        control_trace_mode(worker, wanted->mode);
    return refused ? request_refuse(request, PROTO_ERROR_INVALID_VALUE, why)
                   : request_done(request);
}

static int window(struct request *request)
{
    const struct proto_worker_window *moved = request->body;
    struct client *client = request->client;
    if (client->range_count)
        return request_refuse(request, PROTO_ERROR_INVALID_VALUE, "the client owns memory already");
    client->device_base = moved->device_base;
    client->host_base = moved->host_base;
    client->window_bytes = moved->window_bytes;
    return request_done(request);
}

static int detach(struct request *request)
{
    struct client *client = request->client;
    if (client->detaching)
        return request_refuse(request, PROTO_ERROR_INVALID_HANDLE,
                              "the client is being detached already");
    pthread_mutex_lock(&client->lock);
    client->stopped = true;
    client->violated = false;
    client->detaching = true;
    client->detach_serial = request->serial;
    client->blocked = false;
    __atomic_store_n(&client->in_use, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&client->lock);
    submitter_drop(&request->worker->submitter, client);
    loader_forget(&request->worker->loader, client);
    loader_forget(&request->worker->clearer, client);
    completer_note(&request->worker->completer, true);
    return 0;
}

void control_client_usage(struct worker *worker, struct client *client,
                          struct proto_worker_usage *used)
{
    struct place_view view;
    place_look(&worker->places, &client->place, timeline_now(), &view);
    *used = (struct proto_worker_usage){.multiprocessors = view.multiprocessors,
                                        .throttled_threads = view.held_ns};
    account_collect(&worker->account);
    gate_charge(&worker->gate);
    gate_usage(&worker->gate, client, used);
    pthread_mutex_lock(&client->lock);
    used->launches = client->usage.launches;
    used->copies = client->usage.copies;
    used->copied_bytes = client->usage.copied_bytes;
    used->gpu_nanoseconds = __atomic_load_n(&client->usage.gpu_nanoseconds, __ATOMIC_RELAXED);
    memcpy(used->waits, client->usage.waits, sizeof used->waits);
    used->in_flight = client_in_flight(client);
    for (uint32_t i = 0; i < client->stream_count; i++)
        used->streams += client->streams[i].state != STREAM_FREE;
    pthread_mutex_unlock(&client->lock);
    used->shared_queues = stream_pool_shared(&worker->pool, client);
}

static int usage(struct request *request)
{
    struct proto_worker_usage used;
    control_client_usage(request->worker, request->client, &used);
    return request_answer(request, PROTO_WORKER_USAGE, &used);
}

static int link_client(struct request *request)
{
    const struct proto_worker_link *wanted = request->body;
    struct client *client = request->client;
    struct link link = {.twins = SHM_NONE, .streams = wanted->streams};
    int fd = channel_take_fd(request->message, 0);
    if (client->link_count == CLIENT_LINKS_MAX) {
        close(fd);
        return request_refuse(request, PROTO_ERROR_TOO_MANY_OBJECTS,
                              "the client has as many links as it may have");
    }
    int adopted = shm_adopt(&link.twins, fd, wanted->streams * sizeof(uint64_t), false);
    if (adopted < 0) {
        close(fd);
        return request_refuse(request, error_from_errno(adopted),
                              "the linked timelines can't be used");
    }
    /* The mapping is enough, and descriptors are what this process runs out of first. */
    close(link.twins.fd);
    link.twins.fd = -1;
    pthread_mutex_lock(&client->lock);
    struct link *links = realloc(client->links, (client->link_count + 1) * sizeof *links);
    if (links) {
        client->links = links;
        links[client->link_count++] = link;
    }
    struct proto_linked linked = {.link = client->link_count};
    pthread_mutex_unlock(&client->lock);
    if (!links) {
        shm_release(&link.twins);
        return request_refuse(request, PROTO_ERROR_SERVER_RESOURCES, "no memory for a link");
    }
    return request_answer(request, PROTO_LINKED, &linked);
}

/* ---- memory ---- */

/* Answered when the memory has been cleared. */
static int map(struct request *request)
{
    const struct proto_worker_map *wanted = request->body;
    struct client *client = request->client;
    struct loader_job job = {
        .kind = LOADER_CLEAR, .fd = -1, .address = wanted->address, .count = wanted->count};
    struct refusal why;
    uint32_t error = memory_map(client, wanted->address, wanted->count, &job.fd, &why);
    if (error)
        return request_refuse(request, error, why.text);
    int submitted = request_submit(request, &request->worker->clearer, &job);
    if (submitted > 0)
        return 0;
    close(job.fd);
    memory_unmap(client, wanted->address, wanted->count, &why);
    return submitted;
}

static int host_map(struct request *request)
{
    const struct proto_worker_host_map *wanted = request->body;
    struct refusal why;
    uint32_t error = memory_host_map(request->client, wanted->address, wanted->count,
                                     channel_take_fd(request->message, 0), &why);
    return error ? request_refuse(request, error, why.text) : request_done(request);
}

static int unmap_range(struct request *request, uint64_t address, uint64_t count,
                       enum range_kind kind, enum memory_free_kind how)
{
    struct client *client = request->client;
    struct memory_free *asked = NULL;
    pthread_mutex_lock(&client->lock);
    struct range *range = memory_range_exact(client, address, count, kind);
    bool known = range && !range->dying;
    if (known)
        asked = memory_free_request(client, how, request->serial);
    if (asked) {
        asked->address = address;
        asked->count = count;
        range->dying = asked;
    }
    pthread_mutex_unlock(&client->lock);
    if (!known)
        return request_refuse(request, PROTO_ERROR_INVALID_HANDLE, "nothing is mapped there");
    return request_finish(request, asked);
}

static int unmap(struct request *request)
{
    const struct proto_worker_unmap *wanted = request->body;
    return unmap_range(request, wanted->address, wanted->count, RANGE_DEVICE, MEMORY_FREE_DEVICE);
}

static int host_unmap(struct request *request)
{
    const struct proto_worker_host_unmap *wanted = request->body;
    return unmap_range(request, wanted->address, wanted->count, RANGE_HOST, MEMORY_FREE_HOST);
}

static int quiesce(struct request *request)
{
    pthread_mutex_lock(&request->client->lock);
    struct memory_free *asked =
        memory_free_request(request->client, MEMORY_FREE_NOTHING, request->serial);
    pthread_mutex_unlock(&request->client->lock);
    return request_finish(request, asked);
}

/* ---- which message ---- */

static const struct {
    uint16_t opcode;
    int (*handle)(struct request *request);
} handlers[] = {
    {PROTO_WORKER_WINDOW, window},
    {PROTO_WORKER_DETACH, detach},
    {PROTO_WORKER_LIMITS, limits},
    {PROTO_WORKER_MAP, map},
    {PROTO_WORKER_UNMAP, unmap},
    {PROTO_WORKER_QUIESCE, quiesce},
    {PROTO_WORKER_HOST_MAP, host_map},
    {PROTO_WORKER_HOST_UNMAP, host_unmap},
    {PROTO_WORKER_LINK, link_client},
    {PROTO_WORKER_MODULE_INSPECT, control_module_inspect},
    {PROTO_WORKER_MODULE_LOAD, control_module_load},
    {PROTO_WORKER_USAGE_QUERY, usage},
    {PROTO_MODULE_UNLOAD, control_module_unload},
    {PROTO_FUNCTION_GET, control_function_get},
    {PROTO_FUNCTION_SET, control_function_set},
    {PROTO_GLOBAL_GET, control_global_get},
    {PROTO_OCCUPANCY_GET, control_occupancy_get},
    {PROTO_STREAM_CREATE, control_stream_create},
    {PROTO_STREAM_DESTROY, control_stream_destroy},
    {PROTO_EVENT_CREATE, control_event_create},
    {PROTO_EVENT_DESTROY, control_event_destroy},
    {PROTO_EVENT_ELAPSED, control_event_elapsed},
};

int control_handle(struct worker *worker, struct channel_message *message)
{
    struct request request = {
        .worker = worker,
        .message = message,
        .body = message->body,
        .serial = message->header.serial,
        .number = message->header.client,
    };
    if (message->header.opcode == PROTO_WORKER_ATTACH)
        return attach(&request);
    if (message->header.opcode == PROTO_WORKER_SCHEDULE)
        return schedule(&request);
    if (message->header.opcode == PROTO_WORKER_TRACE_START)
        return control_trace_start(worker, message);
    if (message->header.opcode == PROTO_WORKER_TRACE_STOP)
        return control_trace_stop(worker, message);
    request.client = worker_find_client(worker, request.number);
    if (!request.client ||
        (request.client->detaching && message->header.opcode != PROTO_WORKER_DETACH))
        return request_refuse(&request, PROTO_ERROR_INVALID_HANDLE, "there is no such client");
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (handlers[i].opcode == message->header.opcode)
            return handlers[i].handle(&request);
    return request_refuse(&request, PROTO_ERROR_PROTOCOL_VIOLATION,
                          "a message that a worker does not take");
}
