/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_retire.h"

#include <stdlib.h>

#include "common/messages.h"
#include "common/util.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/client/kept_buffers.h"
#include "server/worker/code/client_module.h"
#include "server/worker/control/control_call.h"
#include "server/worker/control/control_quiet.h"
#include "server/worker/control/reply.h"

static void retire_now(struct worker *worker, struct client *client,
                       const struct retirement *request, struct error *why)
{
    switch (request->kind) {
    case RETIRE_NOTHING:
        break;
    case RETIRE_DEVICE:
        client_memory_forget(client, request->address, request->count, RANGE_DEVICE);
        break;
    case RETIRE_HOST:
        client_memory_host_unmap(client, request->address, request->count, why);
        break;
    case RETIRE_KEEP:
        kept_buffers_take(&worker->kept, client, request->address, request->count, why);
        break;
    case RETIRE_MODULE:
        client_module_destroy(client, client_module_find(client, request->handle));
        break;
    case RETIRE_EVENT:
        client_event_forget(client, request->handle);
        break;
    }
}

static int answer_retired(struct worker *worker, const struct client *client,
                          const struct retirement *request, const struct error *why)
{
    struct proto_worker_event_ended ended = {.event = request->handle};
    if (why->number)
        return reply_refuse(worker, request->serial, client->number, why);
    if (request->serial)
        return reply_send(worker, PROTO_DONE, request->serial, client->number, NULL);
    if (request->kind == RETIRE_EVENT)
        return reply_send(worker, PROTO_WORKER_EVENT_ENDED, 0, client->number, &ended);
    return 0;
}

int control_retire_end(struct worker *worker, struct client *client, struct retirement *request)
{
    struct error why = {0};
    retire_now(worker, client, request, &why);
    int error = answer_retired(worker, client, request, request->refusal ? request->refusal : &why);
    free(request->refusal);
    free(request->spare);
    free(request);
    return error;
}

/* ---- what the caller thread does first ---- */

struct retire_call {
    struct control_call control;
    struct retirement *request;
    cuda_event event; /* of RETIRE_EVENT */
    struct error why; /* number 0: done */
};

static bool make_retire(struct driver_call *driver_call)
{
    struct retire_call *call = container_of(driver_call, struct retire_call, control.call);
    const struct gpu *gpu = call->control.request.client->gpu;
    const struct retirement *request = call->request;
    if (request->kind == RETIRE_EVENT)
        gpu->cuda->cuEventDestroy(call->event);
    else
        client_memory_unmap(gpu, request->address, request->count, &call->why);
    return false;
}

static int end_retire(struct control_call *control)
{
    struct retire_call *call = container_of(control, struct retire_call, control);
    struct retirement *request = call->request;
    struct client *client = control->request.client;
    if (!call->why.number)
        return control_retire_end(control->request.worker, client, request);
    /* The range stays, since the driver keeps it; no command may name it any more. */
    client_memory_close(client, request->address, request->count, RANGE_DEVICE);
    int error = answer_retired(control->request.worker, client, request, &call->why);
    free(request);
    return error;
}

/* The request's spare memory is the call's from now on. */
static void leave_to_caller(struct worker *worker, struct client *client,
                            struct retirement *request)
{
    struct request asked = {
        .worker = worker, .client = client, .serial = request->serial, .number = client->number};
    struct retire_call *call = request->spare;
    request->spare = NULL;
    control_call_open(&call->control, &asked, make_retire, end_retire);
    call->request = request;
    if (request->kind == RETIRE_EVENT)
        call->event = client->objects.events[request->handle - 1].handle;
    control_call_leave(&call->control);
}

static bool waits_for_device(const struct retirement *request)
{
    return request->kind == RETIRE_HOST || request->kind == RETIRE_MODULE;
}

static bool takes_lock(enum retire_kind kind)
{
    return kind == RETIRE_DEVICE || kind == RETIRE_EVENT;
}

struct retirement *control_retire_request(struct client *client, enum retire_kind kind,
                                          uint64_t serial)
{
    void *spare = takes_lock(kind) ? calloc(1, sizeof(struct retire_call)) : NULL;
    if (takes_lock(kind) && !spare)
        return NULL;
    struct retirement *request = retire_request(client, kind, serial);
    if (request)
        request->spare = spare;
    else
        free(spare);
    return request;
}

/* The completer looks for requests that are ready, and must not find the same ones again. */
static void take_ready(struct client *client)
{
    struct retirement *request;
    client_lock(client);
    while ((request = retire_take(client)))
        queue_append(&client->control.ready, &request->link);
    pthread_mutex_unlock(&client->lock);
}

static int carry_out(struct worker *worker, struct client *client, struct retirement *request)
{
    if (waits_for_device(request))
        control_quiet_retire(worker, client, request, control_retire_end);
    else if (takes_lock(request->kind))
        leave_to_caller(worker, client, request);
    else
        return control_retire_end(worker, client, request);
    return 0;
}

int control_retire_finish(struct worker *worker, struct client *client)
{
    take_ready(client);
    /* Calls that were left before a request may still use what it gives up. */
    while (!queue_is_empty(&client->control.ready) && !client->control.calling) {
        int error =
            carry_out(worker, client, QUEUE_TAKE(&client->control.ready, struct retirement, link));
        if (error < 0)
            return error;
    }
    return 0;
}

int control_retire_answer(const struct request *request, const struct retirement *asked)
{
    if (!asked)
        return request_refuse(request, MESSAGE(worker_no_memory));
    wake_completer(&request->worker->wake, true);
    return control_retire_finish(request->worker, request->client);
}
