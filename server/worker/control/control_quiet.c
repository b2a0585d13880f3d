/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/activity.h"
#include "server/worker/control/control_quiet.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/code/client_module.h"
#include "server/worker/control/request.h"

static void call_open(struct quiet_call *call, const struct client *client,
                      void (*make)(struct quiet_call *call),
                      int (*end)(struct worker *worker, struct quiet_call *call))
{
    *call = (struct quiet_call){.make = make, .end = end};
    if (client)
        call->caller = request_caller_of(client);
}

/* ---- requests and ends ---- */

/* Nothing else touches what is on its way out: the module and the buffer are dying, a client that
 * ends is LEFT. */
static void make_retired(struct quiet_call *call)
{
    struct retirement *request = container_of(call, struct retirement, call);
    if (request->kind == RETIRE_MODULE)
        client_module_unload(request->client, request->module);
    else
        client_memory_host_unregister(request->client, request->address, request->count);
}

static int end_retired(struct worker *worker, struct quiet_call *call)
{
    struct retirement *request = container_of(call, struct retirement, call);
    request->client->control.deferred--;
    return request->end(worker, request->client, request);
}

void control_quiet_retire(struct worker *worker, struct client *client, struct retirement *request,
                          control_quiet_end *end)
{
    call_open(&request->call, client, make_retired, end_retired);
    request->client = client;
    request->end = end;
    if (request->kind == RETIRE_MODULE)
        request->module = client_module_find(client, request->handle);
    client->control.deferred++;
    quiet_calls_defer(&worker->quiet_calls, &request->call, false);
}

static void make_left(struct quiet_call *call)
{
    struct client *client = container_of(call, struct client, control.leaving);
    client_module_unload_all(client);
    client_memory_host_unregister_all(client);
    client_unregister(client);
}

static int end_left(struct worker *worker, struct quiet_call *call)
{
    struct client *client = container_of(call, struct client, control.leaving);
    return client->control.left(worker, client, NULL);
}

void control_quiet_leave(struct worker *worker, struct client *client, control_quiet_end *end)
{
    if (client->control.ending)
        return;
    client->control.ending = true;
    client->control.left = end;
    call_open(&client->control.leaving, client, make_left, end_left);
    quiet_calls_defer(&worker->quiet_calls, &client->control.leaving, false);
}

/* ---- room for local memory ---- */

struct growth {
    struct quiet_call call;
    struct worker *worker;
    struct client *client; /* that wishes it; NULL: the schedule does */
    uint64_t local_bytes;
    cuda_result grown;
};

static void make_growth(struct quiet_call *call)
{
    struct growth *growth = container_of(call, struct growth, call);
    struct gpu *gpu = &growth->worker->gpu;
    cuda_stream streams[STREAM_POOL_MAX];
    uint32_t count = stream_pool_one_of_each(&growth->worker->pool, streams, STREAM_POOL_MAX);
    growth->grown = local_memory_grow(&gpu->local, gpu->cuda, growth->local_bytes, streams, count);
}

/* Of all threads that the device can run at once. */
static unsigned long long mebibytes_of(const struct proto_device_info *device, uint64_t bytes)
{
    return bytes * device->multiprocessors * device->multiprocessor_threads >> 20;
}

static void say_grown(struct worker *worker, const struct growth *growth)
{
    if (growth->grown != CUDA_OK && cuda_driver_error_is_sticky(growth->grown))
        worker_fail(worker, growth->grown, CONTEXT_LOSS_LOCAL_MEMORY);
    else if (growth->grown != CUDA_OK)
        log_warning(MESSAGE_TEXT(local_memory_refused), worker->gpu.info.device,
                    (unsigned long long)growth->local_bytes,
                    cuda_driver_error_sentence(growth->grown));
    else
        log_notice(MESSAGE_TEXT(local_memory_room), worker->gpu.info.device,
                   (unsigned long long)growth->local_bytes,
                   mebibytes_of(&worker->gpu.info, growth->local_bytes));
}

/* A call that was dropped counts as made: its client leaves. */
static void tell_grown(struct worker *worker, struct client *client, const struct growth *growth)
{
    client->control.deferred--;
    client_lock(client);
    struct client_shared *shared = &client->shared;
    shared->local_asked = false;
    if (growth->grown != CUDA_OK)
        shared->local_refused = growth->local_bytes;
    if (shared->local_wanted <= growth->local_bytes)
        shared->local_wanted = 0;
    else
        local_memory_wish(&worker->gpu.local);
    pthread_mutex_unlock(&client->lock);
    client_signal_submitter(client);
    wake_submitter(&worker->wake);
}

static int end_growth(struct worker *worker, struct quiet_call *call)
{
    struct growth *growth = container_of(call, struct growth, call);
    say_grown(worker, growth);
    if (growth->client)
        tell_grown(worker, growth->client, growth);
    free(growth);
    return 0;
}

static struct growth *growth_new(struct worker *worker, struct client *client, uint64_t bytes)
{
    struct growth *growth = calloc(1, sizeof *growth);
    if (!growth)
        return NULL;
    call_open(&growth->call, client, make_growth, end_growth);
    growth->worker = worker;
    growth->client = client;
    growth->local_bytes = bytes;
    return growth;
}

static bool grow_for(struct worker *worker, struct client *client, uint64_t bytes)
{
    struct growth *growth = growth_new(worker, client, bytes);
    if (!growth)
        return false;
    growth->call.droppable = true;
    client->control.deferred++;
    quiet_calls_defer(&worker->quiet_calls, &growth->call, true);
    return true;
}

bool control_quiet_grow(struct worker *worker)
{
    if (!local_memory_take_wish(&worker->gpu.local))
        return true;
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        client_lock(client);
        struct client_shared *shared = &client->shared;
        bool asks = shared->local_wanted && !shared->local_asked &&
                    client_state_is_served(client_state(client));
        uint64_t bytes = shared->local_wanted;
        shared->local_asked |= asks;
        pthread_mutex_unlock(&client->lock);
        if (asks && !grow_for(worker, client, bytes))
            return false;
    }
    return true;
}

bool control_quiet_grow_reserve(struct worker *worker, uint64_t bytes, struct growth **growth)
{
    *growth = NULL;
    if (bytes <= local_memory_room(&worker->gpu.local))
        return true;
    *growth = growth_new(worker, NULL, bytes);
    return *growth != NULL;
}

void control_quiet_grow_commit(struct worker *worker, struct growth *growth)
{
    if (growth)
        quiet_calls_defer(&worker->quiet_calls, &growth->call, false);
}

void control_quiet_grow_drop(struct growth *growth)
{
    free(growth);
}

/* ---- what was carried out ---- */

int control_quiet_finish(struct worker *worker)
{
    struct quiet_call *call;
    int error = 0;
    while (error >= 0 && (call = quiet_calls_collect(&worker->quiet_calls))) {
        activity_beat();
        error = call->end(worker, call);
    }
    return error;
}

void control_quiet_finish_all(struct worker *worker)
{
    quiet_calls_make_rest(&worker->quiet_calls);
    /* The supervisor may be gone: an answer that can't be sent keeps nothing from ending. */
    while (control_quiet_finish(worker) < 0)
        ;
}
