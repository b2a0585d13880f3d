/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/request.h"

#include <stdlib.h>

#include "common/messages.h"
#include "server/worker/control/reply.h"

int request_refuse(const struct request *request, uint32_t error, const char *text)
{
    return reply_refuse(request->worker, request->serial, request->number, error, text);
}

int request_answer(const struct request *request, uint16_t opcode, const void *body)
{
    return reply_send(request->worker, opcode, request->serial, request->number, body);
}

int request_done(const struct request *request)
{
    return request_answer(request, PROTO_DONE, NULL);
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
    loader_submit(loader, job);
    return 1;
}
