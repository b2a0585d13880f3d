/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/messages.h"
#include "server/worker/control/reply.h"

int request_refuse(const struct request *request, uint32_t error, const char *format, ...)
{
    struct error why = {.number = error};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why.text, sizeof why.text, format, arguments);
    va_end(arguments);
    return request_refuse_why(request, &why);
}

int request_refuse_why(const struct request *request, const struct error *why)
{
    return reply_refuse(request->worker, request->serial, request->number, why);
}

int request_answer(const struct request *request, uint16_t opcode, const void *body)
{
    return reply_send(request->worker, opcode, request->serial, request->number, body);
}

int request_done(const struct request *request)
{
    return request_answer(request, PROTO_DONE, NULL);
}

struct quiet_caller request_caller(const struct request *request)
{
    if (!request->client)
        return (struct quiet_caller){.level = SCHEDULER_LEVELS - 1};
    return request_caller_of(request->client);
}

struct quiet_caller request_caller_of(const struct client *client)
{
    return (struct quiet_caller){.client = client->number,
                                 .owner = client->control.owner,
                                 .level = client->control.allowance.priority,
                                 .restores = client->control.restoring};
}

int request_submit(const struct request *request, struct loader *loader,
                   const struct loader_job *wanted)
{
    struct loader_job *job = malloc(sizeof *job);
    if (!job)
        return request_refuse(request, MESSAGE(worker_no_memory));
    *job = *wanted;
    job->client = request->client;
    job->serial = request->serial;
    job->caller = request_caller(request);
    loader_submit(loader, job);
    return 1;
}
