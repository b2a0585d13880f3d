/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/activity.h"
#include "server/worker/control/control_quiet.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/code/client_module.h"

struct deferred {
    struct quiet_call call;
    struct worker *worker;
    struct client *client; /* NULL: of the whole device */
    uint64_t local_bytes;  /* room for local memory is to be made; 0: something else */
    cuda_result grown;
    struct retirement *request;   /* NULL: the client's end, or room */
    struct client_module *module; /* of RETIRE_MODULE */
    control_quiet_end *end;
};

/* The driver thread's part. Nothing else touches what is on its way out: the module and the buffer
 * are dying, a client that ends is LEFT. */
static void make_deferred(struct quiet_call *call)
{
    struct deferred *deferred = container_of(call, struct deferred, call);
    struct client *client = deferred->client;
    const struct retirement *request = deferred->request;
    if (deferred->local_bytes) {
        struct gpu *gpu = &deferred->worker->gpu;
        deferred->grown = local_memory_grow(&gpu->local, gpu->cuda, deferred->local_bytes);
    } else if (!request) {
        client_module_unload_all(client);
        client_memory_host_unregister_all(client);
        client_unregister(client);
    } else if (request->kind == RETIRE_MODULE) {
        client_module_unload(client, deferred->module);
    } else {
        client_memory_host_unregister(client, request->address, request->count);
    }
}

static int end_deferred(struct worker *worker, struct quiet_call *call)
{
    struct deferred *deferred = container_of(call, struct deferred, call);
    struct client *client = deferred->client;
    struct retirement *request = deferred->request;
    control_quiet_end *end = deferred->end;
    free(deferred);
    client->control.deferred -= request != NULL;
    return end(worker, client, request);
}

static struct deferred *deferred_new(struct worker *worker, struct client *client,
                                     control_quiet_end *end)
{
    struct deferred *deferred = calloc(1, sizeof *deferred);
    if (!deferred)
        return NULL;
    deferred->worker = worker;
    deferred->client = client;
    deferred->end = end;
    deferred->call.make = make_deferred;
    deferred->call.end = end_deferred;
    if (!client)
        return deferred;
    deferred->call.caller = (struct quiet_caller){.client = client->number,
                                                  .owner = client->gate.scheduled.owner,
                                                  .level = client->control.allowance.priority};
    return deferred;
}

bool control_quiet_retire(struct worker *worker, struct client *client, struct retirement *request,
                          control_quiet_end *end)
{
    struct deferred *deferred = deferred_new(worker, client, end);
    if (!deferred)
        return false;
    deferred->request = request;
    if (request->kind == RETIRE_MODULE)
        deferred->module = client_module_find(client, request->handle);
    client->control.deferred++;
    quiet_calls_defer(&worker->quiet_calls, &deferred->call, false);
    return true;
}

bool control_quiet_leave(struct worker *worker, struct client *client, control_quiet_end *end)
{
    if (client->control.ending)
        return true;
    struct deferred *deferred = deferred_new(worker, client, end);
    if (!deferred)
        return false;
    client->control.ending = true;
    quiet_calls_defer(&worker->quiet_calls, &deferred->call, false);
    return true;
}

/* ---- room for local memory ---- */

static void say_grown(struct worker *worker, const struct deferred *deferred)
{
    if (deferred->grown != CUDA_OK && cuda_driver_error_is_sticky(deferred->grown))
        worker_fail(worker, deferred->grown, "making room for local memory");
    else if (deferred->grown != CUDA_OK)
        log_warning(MESSAGE_TEXT(local_memory_refused), worker->gpu.info.device,
                    (unsigned long long)deferred->local_bytes,
                    cuda_driver_error_sentence(deferred->grown));
}

/* A call that was dropped counts as made: its client leaves. */
static void tell_grown(struct worker *worker, struct client *client,
                       const struct deferred *deferred)
{
    client->control.deferred--;
    pthread_mutex_lock(&client->lock);
    struct client_shared *shared = &client->shared;
    shared->local_asked = false;
    if (deferred->grown != CUDA_OK)
        shared->local_refused = deferred->local_bytes;
    if (shared->local_wanted <= deferred->local_bytes)
        shared->local_wanted = 0;
    else
        local_memory_wish(&worker->gpu.local);
    pthread_mutex_unlock(&client->lock);
    client_signal_submitter(client);
    wake_submitter(&worker->wake);
}

static int end_growth(struct worker *worker, struct quiet_call *call)
{
    struct deferred *deferred = container_of(call, struct deferred, call);
    say_grown(worker, deferred);
    if (deferred->client)
        tell_grown(worker, deferred->client, deferred);
    free(deferred);
    return 0;
}

static bool grow_for(struct worker *worker, struct client *client, uint64_t bytes)
{
    struct deferred *deferred = deferred_new(worker, client, NULL);
    if (!deferred)
        return false;
    deferred->local_bytes = bytes;
    deferred->call.end = end_growth;
    deferred->call.droppable = true;
    client->control.deferred++;
    quiet_calls_defer(&worker->quiet_calls, &deferred->call, true);
    return true;
}

bool control_quiet_grow(struct worker *worker)
{
    if (!local_memory_take_wish(&worker->gpu.local))
        return true;
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        pthread_mutex_lock(&client->lock);
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

bool control_quiet_grow_to(struct worker *worker, uint64_t bytes)
{
    if (bytes <= local_memory_room(&worker->gpu.local))
        return true;
    struct deferred *deferred = deferred_new(worker, NULL, NULL);
    if (!deferred)
        return false;
    deferred->local_bytes = bytes;
    deferred->call.end = end_growth;
    quiet_calls_defer(&worker->quiet_calls, &deferred->call, false);
    return true;
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
