/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_module.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/messages.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/code/client_module.h"
#include "server/worker/control/control_retire.h"
#include "server/worker/control/reply.h"

int control_module_inspect(struct request *request)
{
    const struct proto_worker_module_inspect *wanted = request->body;
    struct loader_job job = {.kind = LOADER_INSPECT, .count = wanted->count};
    uint32_t error = client_module_new(request->client, wanted->module,
                                       &request->worker->code_memory, &job.module, &job.why);
    if (error)
        return request_refuse_why(request, &job.why);
    job.fd = channel_take_fd(request->message, 0);
    int submitted = request_submit(request, &request->worker->loader, &job);
    if (submitted > 0)
        return 0;
    close(job.fd);
    client_module_destroy(request->client, job.module);
    return submitted;
}

int control_module_load(struct request *request)
{
    const struct proto_worker_module_load *wanted = request->body;
    struct loader_job job = {.kind = LOADER_LOAD,
                             .module = client_module_find(request->client, wanted->module),
                             .fd = -1,
                             .global_base = wanted->global_base};
    if (!job.module || !client_module_is_loadable(job.module))
        return request_refuse(request, MESSAGE(worker_load_unknown), wanted->module);
    int submitted = request_submit(request, &request->worker->loader, &job);
    return submitted > 0 ? 0 : submitted;
}

static int answer_load(struct worker *worker, const struct loader_job *job)
{
    uint32_t number = job->client->number;
    if (client_state_is_leaving(client_state(job->client)))
        return 0;
    if (job->error)
        return reply_refuse(worker, job->serial, number, &job->why);
    if (job->kind == LOADER_INSPECT)
        return reply_send(worker, PROTO_WORKER_MODULE_NEEDS, job->serial, number, &job->needs);
    if (job->kind == LOADER_CLEAR) {
        struct proto_worker_mapped mapped = {.address = job->address};
        return reply_send_with(worker, PROTO_WORKER_MAPPED, job->serial, number, &mapped, NULL, 0,
                               &job->fd, 1);
    }
    struct proto_module_loaded loaded = {.module = client_module_number(job->module),
                                         .functions = job->functions};
    return reply_send(worker, PROTO_MODULE_LOADED, job->serial, number, &loaded);
}

static int finish_load(struct worker *worker, struct loader_job *job)
{
    struct error why;
    int error = answer_load(worker, job);
    if (job->error && job->kind == LOADER_INSPECT)
        client_module_destroy(job->client, job->module);
    if (job->error && job->kind == LOADER_CLEAR)
        client_memory_unmap(job->client, job->address, job->count, &why);
    if (job->fd >= 0)
        close(job->fd);
    free(job);
    return error;
}

int control_module_finish(struct worker *worker)
{
    struct loader *const loaders[] = {&worker->clearer, &worker->loader};
    struct loader_job *job;
    int error = 0;
    for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++)
        while (error >= 0 && (job = loader_collect(loaders[i])))
            error = finish_load(worker, job);
    return error;
}

int control_module_unload(struct request *request)
{
    const struct proto_module_unload *wanted = request->body;
    struct client *client = request->client;
    struct client_module *module = client_module_find(client, wanted->module);
    if (!module || client_module_is_busy(module) || client_module_dying(module))
        return request_refuse(request, MESSAGE(worker_module_unknown), wanted->module);
    pthread_mutex_lock(&client->lock);
    struct retirement *asked = retire_request(client, RETIRE_MODULE, request->serial);
    if (asked) {
        asked->handle = wanted->module;
        client_module_mark_dying(client, module, asked);
    }
    pthread_mutex_unlock(&client->lock);
    return control_retire_answer(request, asked);
}

int control_function_get(struct request *request)
{
    const struct proto_function_get *wanted = request->body;
    struct proto_function_info info = {0};
    uint32_t layout[2 * PROTO_PARAMETER_COUNT_MAX];
    struct error why;
    uint32_t error = client_module_function(request->client, wanted->module, wanted->function,
                                            (const char *)request->message->tail,
                                            request->message->tail_bytes, &info, layout, &why);
    if (error)
        return request_refuse_why(request, &why);
    return reply_send_with(request->worker, PROTO_FUNCTION_INFO, request->serial, request->number,
                           &info, layout, info.parameters * 8u, NULL, 0);
}

int control_function_set(struct request *request)
{
    const struct proto_function_set *wanted = request->body;
    struct error why;
    uint32_t error =
        client_module_function_set(request->client, wanted->function, wanted->value, &why);
    return error ? request_refuse_why(request, &why) : request_done(request);
}

int control_global_get(struct request *request)
{
    const struct proto_global_get *wanted = request->body;
    struct proto_global_info info = {0};
    struct error why;
    uint32_t error =
        client_module_global(request->client, wanted->module, (const char *)request->message->tail,
                             request->message->tail_bytes, &info.address, &info.count, &why);
    return error ? request_refuse_why(request, &why)
                 : request_answer(request, PROTO_GLOBAL_INFO, &info);
}

int control_occupancy_get(struct request *request)
{
    struct proto_occupancy_info info = {0};
    struct error why;
    uint32_t error = client_module_occupancy(request->client, request->body, &info.blocks, &why);
    return error ? request_refuse_why(request, &why)
                 : request_answer(request, PROTO_OCCUPANCY_INFO, &info);
}
