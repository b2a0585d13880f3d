/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/request.h"

#include <stdlib.h>

#include "server/worker/control.h"
#include "server/worker/control_free.h"

int request_refuse(const struct request *request, uint32_t error, const char *text)
{
    return control_refuse(request->worker, request->serial, request->number, error, text);
}

int request_answer(const struct request *request, uint16_t opcode, const void *body)
{
    return control_send(request->worker, opcode, request->serial, request->number, body);
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
        return request_refuse(request, PROTO_ERROR_SERVER_RESOURCES, "no memory for the request");
    *job = *wanted;
    job->client = request->client;
    job->serial = request->serial;
    loader_submit(loader, job);
    return 1;
}

int request_finish(const struct request *request, const struct memory_free *asked)
{
    if (!asked)
        return request_refuse(request, PROTO_ERROR_SERVER_RESOURCES, "no memory for the request");
    completer_note(&request->worker->completer, true);
    return control_free_finish(request->worker, request->client);
}
