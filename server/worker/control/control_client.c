/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/control/control_attach.h"
#include "server/worker/control/control_call.h"
#include "server/worker/control/control_limits.h"
#include "server/worker/control/control_quiet.h"
#include "server/worker/control/control_stream.h"
#include "server/worker/control/reply.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/client/kept_buffers.h"
#include "server/worker/code/client_module.h"

int control_client_window(struct request *request)
{
    const struct proto_worker_window *moved = request->body;
    struct client *client = request->client;
    if (client->objects.range_count)
        return request_refuse(request, MESSAGE(worker_window_in_use));
    client->control.device_base = moved->device_base;
    client->control.window_bytes = moved->window_bytes;
    return request_done(request);
}

int control_client_detach(struct request *request)
{
    struct client *client = request->client;
    bool leaves = client_state_is_leaving(client_state(client));
    /* The supervisor before had asked for it. */
    if (leaves && client->control.detach_serial >> PROTO_EPOCH_SHIFT !=
                      request->serial >> PROTO_EPOCH_SHIFT) {
        client->control.detach_serial = request->serial;
        return 0;
    }
    if (leaves)
        return request_refuse(request, MESSAGE(worker_detaching), request->number);
    int sent = control_limits_hurry(request->worker, client);
    if (sent < 0)
        return sent;
    client->control.detach_serial = request->serial;
    submitter_drop(&request->worker->submitter, client);
    loader_forget(&request->worker->loader, client);
    loader_forget(&request->worker->clearer, client);
    quiet_calls_forget(&request->worker->quiet_calls, client->number);
    wake_completer(&request->worker->wake, true);
    return 0;
}

/* Takes the client's lock. limit: of meter_settle. */
static void sum_use(struct worker *worker, struct client *client, uint64_t limit,
                    struct proto_worker_usage *used)
{
    struct placement_view view;
    placement_view(&worker->places, &client->place, clock_now(), &view);
    *used = (struct proto_worker_usage){.multiprocessors = view.multiprocessors,
                                        .throttled_threads = client->held_before_ns + view.held_ns};
    /* The submitter may be between the words that the client saw and the account's event. */
    client_lock(client);
    pthread_mutex_unlock(&client->lock);
    meter_settle(&worker->meter, client, limit);
    gate_charge_client(&worker->gate, client);
    gate_read_usage(&worker->gate, client, used);
    client_lock(client);
    used->launches = client->usage.launches;
    used->copies = client->usage.copies;
    used->copied_bytes = client->usage.copied_bytes;
    /* Relaxed: nothing but the sum is read. */
    used->gpu_nanoseconds =
        atomic_load_explicit(&client->usage.gpu_nanoseconds, memory_order_relaxed);
    memcpy(used->waits, client->usage.waits, sizeof used->waits);
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++)
        used->latencies[i] =
            atomic_load_explicit(&client->usage.latencies[i], memory_order_relaxed);
    used->in_flight = client_in_flight(client);
    for (uint32_t i = 0; i < client->stream_count; i++)
        used->streams += client->streams[i].state != STREAM_FREE;
    if (!client->shared.partition)
        used->partition_error = client->control.making_error;
    pthread_mutex_unlock(&client->lock);
    used->shared_queues = stream_pool_shared(&worker->pool, client);
    used->waits_for = quiet_calls_waits(&worker->quiet_calls, client->number)
                          ? quiet_window_waits_for(&worker->quiet_window)
                          : 0;
    /* A client that leaves waits for its own work before it asks for a window. */
    if (used->in_flight && client_state_is_leaving(client_state(client)))
        used->waits_for = client->number;
    used->loads_wait_for = quiet_window_waits_for(&worker->quiet_window);
    quiet_window_counts(&worker->quiet_window, &used->quiet_windows, &used->quiet_nanoseconds);
    usage_ledger_note(&worker->ledger, worker, client);
}

int control_client_usage(struct request *request)
{
    struct proto_worker_usage used;
    sum_use(request->worker, request->client, METER_SETTLE_NS, &used);
    return request_answer(request, PROTO_WORKER_USAGE, &used);
}

int control_client_link(struct request *request)
{
    const struct proto_worker_link *wanted = request->body;
    struct client *client = request->client;
    struct link link = {.shadows = SHM_NONE, .streams = wanted->streams};
    int fd = channel_take_fd(request->message, 0);
    struct client_objects *objects = &client->objects;
    if (wanted->link <= objects->link_count && objects->links[wanted->link - 1].streams) {
        close(fd);
        struct proto_linked known = {.link = wanted->link};
        if (client->control.forgiving)
            return request_answer(request, PROTO_LINKED, &known);
        return request_refuse(request, MESSAGE(link_exists), wanted->link);
    }
    int adopted = shm_adopt(&link.shadows, fd, ring_shadow_bytes(wanted->streams), false);
    if (adopted < 0) {
        close(fd);
        return request_refuse(request, error_from_errno(adopted), MESSAGE_TEXT(link_unusable),
                              wanted->link, strerror(-adopted));
    }
    /* The mapping is enough, and descriptors are the first thing that this process runs out of. */
    close(link.shadows.fd);
    link.shadows.fd = -1;
    client_lock(client);
    bool reserved = array_reserve(objects->links, objects->link_room, wanted->link) == 0;
    for (; reserved && objects->link_count < wanted->link; objects->link_count++)
        objects->links[objects->link_count] = (struct link){.shadows = SHM_NONE};
    if (reserved)
        objects->links[wanted->link - 1] = link;
    struct proto_linked linked = {.link = wanted->link};
    pthread_mutex_unlock(&client->lock);
    if (!reserved) {
        shm_release(&link.shadows);
        return request_refuse(request, MESSAGE(link_no_memory));
    }
    return request_answer(request, PROTO_LINKED, &linked);
}

/* The submitter may look at these rings before and after, and finds them empty: it does so under
 * the lock, which orders the new mapping before what it reads there. */
int control_client_rings(struct request *request)
{
    const struct proto_worker_rings *wanted = request->body;
    int fd = channel_take_fd(request->message, 0);
    client_lock(request->client);
    int result = ring_memory_add(&request->client->rings, wanted->first, wanted->count, fd);
    pthread_mutex_unlock(&request->client->lock);
    close(fd);
    return result < 0
               ? request_refuse(request, error_from_errno(result), MESSAGE_TEXT(rings_unusable),
                                wanted->first, strerror(-result))
               : request_done(request);
}

/* ---- its end ---- */

/* Of one step, after which it is others' turn. */
enum { RELEASED_AT_ONCE = 32 };

static void release_range(struct client *client, const struct range *range)
{
    uint64_t start = range->start, count = range->end - range->start;
    struct error why;
    if (client_memory_unmap(client->gpu, start, count, &why))
        log_error(MESSAGE_TEXT(device_memory_lost), client->number, (unsigned long long)start,
                  why.text);
    client_memory_forget(client, start, count, RANGE_DEVICE);
}

/* Gives the driver back what needs no quiet window, of a client that is LEFT: no other thread looks
 * at its tables any more. Returns whether there is more. */
static bool release_some(struct client *client)
{
    struct client_objects *objects = &client->objects;
    uint32_t released = 0;
    for (size_t i = objects->range_count; i-- > 0 && released < RELEASED_AT_ONCE;)
        if (objects->ranges[i].kind == RANGE_DEVICE) {
            release_range(client, &objects->ranges[i]);
            released++;
        }
    for (uint32_t i = 0; i < objects->event_count && released < RELEASED_AT_ONCE; i++)
        if (objects->events[i].handle) {
            client->gpu->cuda->cuEventDestroy(objects->events[i].handle);
            client_event_forget(client, i + 1);
            released++;
        }
    return released == RELEASED_AT_ONCE;
}

static void unmap_host_buffers(struct client *client)
{
    struct error why;
    while (client->objects.range_count) {
        struct range range = client->objects.ranges[client->objects.range_count - 1];
        client_memory_host_unmap(client, range.start, range.end - range.start, &why);
    }
}

static void free_requests(struct queue *requests)
{
    struct retirement *request;
    while ((request = QUEUE_TAKE(requests, struct retirement, link))) {
        free(request->spare);
        free(request);
    }
}

/* Of a client that the submitter has dropped (LEFT) and that has nothing in flight: its CUstreams,
 * hardware queues and partition. Idempotent. */
static void leave_partition(struct worker *worker, struct client *client)
{
    for (uint32_t i = 0; i < client->stream_count; i++)
        if (client->streams[i].client)
            stream_pool_unbind(&worker->pool, &client->streams[i]);
    stream_pool_forget(&worker->pool, client);
    control_limits_give_back(worker, client);
}

/* Frees a client that the submitter has dropped (LEFT) and that has nothing in flight. */
static void drop_client(struct worker *worker, struct client *client)
{
    worker_remove_client(worker, client);
    control_limits_assign_priorities(worker);
    client_stream_end_timelines(client);
    meter_forget(&worker->meter, client);
    leave_partition(worker, client);
    free_requests(&client->shared.frees);
    free_requests(&client->control.ready);
    client_module_destroy_all(client); /* also removes the ranges of its variables */
    /* Nothing is left of this but when the worker ends. */
    while (release_some(client))
        ;
    unmap_host_buffers(client);
    client_unregister(client);
    client_destroy(client);
}

static bool make_release(struct driver_call *call)
{
    return release_some(container_of(call, struct control_call, call)->request.client);
}

static int end_release(struct control_call *call)
{
    struct client *client = call->request.client;
    client->control.released = true;
    if (kept_buffers_take_all(&call->request.worker->kept, client) < 0)
        return -ENOMEM;
    return reply_send(call->request.worker, PROTO_WORKER_RELEASED, 0, client->number, NULL);
}

static int end_client(struct worker *worker, struct client *client, struct retirement *request)
{
    struct proto_worker_usage used = client->control.used;
    uint64_t serial = client->control.detach_serial;
    uint32_t number = client->number, refused = client->control.refused;
    (void)request;
    drop_client(worker, client);
    if (refused) {
        struct error why;
        error_set(&why, refused, MESSAGE_TEXT(partition_none), error_sentence(refused));
        return reply_refuse(worker, serial, number, &why);
    }
    return reply_send(worker, PROTO_WORKER_USAGE, serial, number, &used);
}

void control_client_leave(struct worker *worker, struct client *client)
{
    struct request detach = {.worker = worker, .client = client, .number = client->number};
    struct control_call *call = client->control.last_call;
    if (client->control.released) {
        control_quiet_leave(worker, client, end_client);
        return;
    }
    client->control.last_call = NULL;
    /* The rest may have to wait for a quiet window, and others for its multiprocessors and its time
     * until then. */
    sum_use(worker, client, METER_SETTLE_LAST_NS, &client->control.used);
    leave_partition(worker, client);
    control_call_open(call, &detach, make_release, end_release);
    control_call_leave(call);
}

/* For work that is in flight when the worker has to end: long for kernels that end at all, and well
 * below the 5 s after which the supervisor kills the process. */
#define DRAIN_NS UNITS_SECOND

static bool all_quiet(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (!client_is_quiet(worker->clients[i]))
            return false;
    return true;
}

bool control_client_drain(struct worker *worker)
{
    uint64_t end = clock_now() + DRAIN_NS;
    quiet_window_stop(&worker->quiet_window);
    driver_caller_stop(&worker->driver_caller);
    loader_stop(&worker->loader);
    loader_stop(&worker->clearer);
    submitter_stop(&worker->submitter);
    while (!all_quiet(worker)) {
        if (clock_now() > end || atomic_load(&worker->failed))
            return false;
        usleep(1000);
    }
    completer_stop(&worker->completer);
    return true;
}

void control_client_drop_all(struct worker *worker)
{
    control_attach_give_up(worker);
    control_call_finish_all(worker);
    control_quiet_finish_all(worker);
    control_call_finish_all(worker);
    while (worker->client_count) {
        struct client *client = worker->clients[worker->client_count - 1];
        /* The submitter has ended, so this thread takes its step. */
        client_lock(client);
        if (client_state(client) != CLIENT_LEFT) {
            client_state_set(client, CLIENT_LEAVING);
            client_state_set(client, CLIENT_LEFT);
        }
        pthread_mutex_unlock(&client->lock);
        drop_client(worker, client);
    }
    kept_buffers_close(&worker->kept, &worker->gpu);
}
