/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/activity.h"
#include "server/worker/control/control_call.h"

#include <stdlib.h>

#include "common/util.h"

void control_call_open(struct control_call *call, const struct request *request,
                       bool (*make)(struct driver_call *call),
                       int (*end)(struct control_call *call))
{
    call->call.make = make;
    call->call.caller = request_caller(request);
    call->request = *request;
    call->request.message = NULL;
    call->request.body = NULL;
    call->end = end;
}

void *control_call_new(const struct request *request, size_t bytes,
                       bool (*make)(struct driver_call *call),
                       int (*end)(struct control_call *call))
{
    struct control_call *made = calloc(1, bytes);
    if (made)
        control_call_open(made, request, make, end);
    return made;
}

void control_call_leave(struct control_call *call)
{
    if (call->request.client)
        call->request.client->control.calling++;
    driver_calls_leave(&call->request.worker->driver_calls, &call->call);
}

int control_call_finish(struct worker *worker)
{
    struct driver_call *made;
    int error = 0;
    while (error >= 0 && (made = driver_calls_collect(&worker->driver_calls))) {
        struct control_call *call = container_of(made, struct control_call, call);
        activity_beat();
        if (call->request.client)
            call->request.client->control.calling--;
        error = call->end(call);
        free(call);
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
