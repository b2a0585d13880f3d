/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_call.h"

#include <stdlib.h>

#include "common/util.h"
#include "server/worker/control/reply.h"

void *control_call_new(struct worker *worker, struct client *client, uint64_t serial, size_t bytes,
                       bool (*make)(struct driver_call *call),
                       int (*end)(struct control_call *call))
{
    struct control_call *made = calloc(1, bytes);
    if (!made)
        return NULL;
    made->call.make = make;
    made->call.caller = (struct quiet_caller){.client = client->number,
                                              .owner = client->gate.scheduled.owner,
                                              .level = client->control.priority};
    made->worker = worker;
    made->client = client;
    made->serial = serial;
    made->end = end;
    return made;
}

void control_call_leave(struct control_call *call)
{
    call->client->control.calling++;
    driver_calls_leave(&call->worker->driver_calls, &call->call);
}

int control_call_refuse(const struct control_call *call, const struct error *why)
{
    return call->serial ? reply_refuse(call->worker, call->serial, call->client->number, why) : 0;
}

int control_call_answer(const struct control_call *call, uint16_t opcode, const void *body)
{
    return call->serial ? reply_send(call->worker, opcode, call->serial, call->client->number, body)
                        : 0;
}

int control_call_finish(struct worker *worker)
{
    struct driver_call *made;
    int error = 0;
    while (error >= 0 && (made = driver_calls_collect(&worker->driver_calls))) {
        struct control_call *call = container_of(made, struct control_call, call);
        call->client->control.calling--;
        error = call->end(call);
    }
    return error;
}

void control_call_finish_all(struct worker *worker)
{
    bool more = true;
    while (more) {
        more = driver_calls_make_next(&worker->driver_calls);
        /* The supervisor may be gone: an answer that can't be sent keeps nothing from ending. */
        while (control_call_finish(worker) < 0)
            more = true;
    }
}
