/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_quiet.h"

#include <stdlib.h>

#include "common/util.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/code/client_module.h"

struct deferred {
    struct quiet_call call;
    struct client *client;
    struct retirement *request;   /* NULL: the client's end */
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
    if (!request) {
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

static struct deferred *deferred_new(struct client *client, control_quiet_end *end)
{
    struct deferred *deferred = calloc(1, sizeof *deferred);
    if (!deferred)
        return NULL;
    deferred->client = client;
    deferred->end = end;
    deferred->call.make = make_deferred;
    deferred->call.end = end_deferred;
    deferred->call.caller = (struct quiet_caller){.client = client->number,
                                                  .owner = client->gate.scheduled.owner,
                                                  .level = client->control.priority};
    return deferred;
}

bool control_quiet_retire(struct worker *worker, struct client *client, struct retirement *request,
                          control_quiet_end *end)
{
    struct deferred *deferred = deferred_new(client, end);
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
    struct deferred *deferred = deferred_new(client, end);
    if (!deferred)
        return false;
    client->control.ending = true;
    quiet_calls_defer(&worker->quiet_calls, &deferred->call, false);
    return true;
}

int control_quiet_finish(struct worker *worker)
{
    struct quiet_call *call;
    int error = 0;
    while (error >= 0 && (call = quiet_calls_collect(&worker->quiet_calls)))
        error = call->end(worker, call);
    return error;
}

void control_quiet_finish_all(struct worker *worker)
{
    quiet_calls_make_rest(&worker->quiet_calls);
    /* The supervisor may be gone: an answer that can't be sent keeps nothing from ending. */
    while (control_quiet_finish(worker) < 0)
        ;
}
