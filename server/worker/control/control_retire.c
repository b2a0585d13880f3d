/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_retire.h"

#include <stdlib.h>

#include "common/messages.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/code/client_module.h"
#include "server/worker/control/control_quiet.h"
#include "server/worker/control/reply.h"

static uint32_t retire_now(struct client *client, const struct retirement *request,
                           struct error *why)
{
    switch (request->kind) {
    case RETIRE_NOTHING:
        return 0;
    case RETIRE_DEVICE:
        return client_memory_unmap(client, request->address, request->count, why);
    case RETIRE_HOST:
        return client_memory_host_unmap(client, request->address, request->count, why);
    case RETIRE_MODULE:
        client_module_destroy(client, client_module_find(client, request->handle));
        return 0;
    case RETIRE_EVENT:
        client_event_forget(client, request->handle);
        return 0;
    }
    return PROTO_ERROR_UNKNOWN;
}

int control_retire_end(struct worker *worker, struct client *client, struct retirement *request)
{
    struct error why = {0};
    uint32_t refused = retire_now(client, request, &why);
    uint64_t serial = request->serial;
    struct proto_worker_event_ended ended = {
        .event = request->kind == RETIRE_EVENT ? request->handle : 0};
    free(request);
    if (refused)
        return reply_refuse(worker, serial, client->number, &why);
    if (serial)
        return reply_send(worker, PROTO_DONE, serial, client->number, NULL);
    if (ended.event)
        return reply_send(worker, PROTO_WORKER_EVENT_ENDED, 0, client->number, &ended);
    return 0;
}

static bool waits_for_device(const struct retirement *request)
{
    return request->kind == RETIRE_HOST || request->kind == RETIRE_MODULE;
}

/* The completer looks for requests that are ready, and must not find the same ones again. */
static void take_ready(struct client *client)
{
    struct retirement *request;
    pthread_mutex_lock(&client->lock);
    while ((request = retire_take(client))) {
        *client->control.ready_end = request;
        client->control.ready_end = &request->next;
    }
    pthread_mutex_unlock(&client->lock);
}

static struct retirement *next_ready(struct client *client)
{
    struct retirement *request = client->control.ready;
    client->control.ready = request->next;
    if (!client->control.ready)
        client->control.ready_end = &client->control.ready;
    request->next = NULL;
    return request;
}

int control_retire_finish(struct worker *worker, struct client *client)
{
    take_ready(client);
    /* Calls that were left before a request may still use what it gives up. */
    while (client->control.ready && !client->control.calling) {
        struct retirement *request = next_ready(client);
        if (waits_for_device(request) &&
            control_quiet_retire(worker, client, request, control_retire_end))
            continue;
        int error = control_retire_end(worker, client, request);
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
