/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/activity.h"
#include "server/worker/control/control_module.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/ipc/ring.h"
#include "common/ipc/shared_word.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/code/client_function.h"
#include "server/worker/code/client_module.h"
#include "server/worker/control/control_call.h"
#include "server/worker/control/control_memory.h"
#include "server/worker/control/control_retire.h"
#include "server/worker/control/reply.h"

/* The module, if the supervisor before had it made again already. */
static struct client_module *find_again(const struct request *request, uint32_t number)
{
    return request->client->control.restoring ? client_module_find(request->client, number) : NULL;
}

int control_module_inspect(struct request *request)
{
    const struct proto_worker_module_inspect *wanted = request->body;
    /* Its needs were charged when it was first read. */
    if (find_again(request, wanted->module)) {
        struct proto_worker_module_needs known = {0};
        return request_answer(request, PROTO_WORKER_MODULE_NEEDS, &known);
    }
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
                             .global_base = wanted->global_base,
                             .again = wanted->again};
    if (find_again(request, wanted->module) && client_module_handle(job.module)) {
        struct proto_module_loaded loaded = {.module = wanted->module};
        return request_answer(request, PROTO_MODULE_LOADED, &loaded);
    }
    if (!job.module || !client_module_is_loadable(job.module))
        return request_refuse(request, MESSAGE(worker_load_unknown), wanted->module);
    int submitted = request_submit(request, &request->worker->loader, &job);
    return submitted > 0 ? 0 : submitted;
}

int control_module_lost(struct request *request)
{
    const struct proto_worker_module_lost *told = request->body;
    struct client *client = request->client;
    struct error why;
    if (find_again(request, told->module))
        return request_done(request);
    uint32_t error = client_module_new_lost(client, told->module, told->unsaved,
                                            &request->worker->code_memory, &why);
    if (error)
        return request_refuse_why(request, &why);
    shared_word_publish_add(&ring_status_header(client->status.base)->modules_lost, 1);
    return request_done(request);
}

int control_function_lost(struct request *request)
{
    const struct proto_worker_function_lost *told = request->body;
    struct client_module *module = client_module_find(request->client, told->module);
    struct error why;
    if (!module || !client_module_is_lost(module))
        return request_refuse(request, MESSAGE(worker_module_unknown), told->module);
    if (client_function_enter_lost(request->client, told->function, module, &why))
        return request_refuse_why(request, &why);
    return request_done(request);
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
    struct proto_module_loaded loaded = {.module = client_module_number(job->module),
                                         .functions = job->functions};
    return reply_send(worker, PROTO_MODULE_LOADED, job->serial, number, &loaded);
}

static int finish_load(struct worker *worker, struct loader_job *job)
{
    int error =
        job->kind == LOADER_CLEAR ? control_memory_cleared(worker, job) : answer_load(worker, job);
    if (job->error && job->kind == LOADER_INSPECT)
        client_module_destroy(job->client, job->module);
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
        while (error >= 0 && (job = loader_collect(loaders[i]))) {
            activity_beat();
            error = finish_load(worker, job);
        }
    return error;
}

int control_module_unload(struct request *request)
{
    const struct proto_module_unload *wanted = request->body;
    struct client *client = request->client;
    struct client_module *module = client_module_find(client, wanted->module);
    if (!module && client->control.forgiving)
        return request_done(request);
    if (module && client_module_dying(module) && client->control.forgiving) {
        ((struct retirement *)(uintptr_t)client_module_dying(module))->serial = request->serial;
        return 0;
    }
    if (!module || client_module_is_busy(module) || client_module_dying(module))
        return request_refuse(request, MESSAGE(worker_module_unknown), wanted->module);
    client_lock(client);
    struct retirement *asked = control_retire_request(client, RETIRE_MODULE, request->serial);
    if (asked) {
        asked->handle = wanted->module;
        client_module_mark_dying(client, module, asked);
    }
    pthread_mutex_unlock(&client->lock);
    return control_retire_answer(request, asked);
}

/* ---- questions to the driver ---- */

struct lookup_call {
    struct control_call control;
    uint32_t number; /* the kernel's, as the supervisor chose it */
    uint32_t error;
    struct error why;
    struct client_module_lookup lookup;
};

/* Returns the call, which is to be left; NULL: the request was answered, with *result. */
static struct lookup_call *begin_lookup(const struct request *request, uint32_t module,
                                        bool (*make)(struct driver_call *call),
                                        int (*end)(struct control_call *call), int *result)
{
    struct error why;
    struct lookup_call *call = control_call_new(request, sizeof *call, make, end);
    if (!call) {
        *result = request_refuse(request, MESSAGE(worker_no_memory));
        return NULL;
    }
    if (!client_module_lookup(request->client, module, (const char *)request->message->tail,
                              request->message->tail_bytes, &call->lookup, &why))
        return call;
    free(call);
    *result = request_refuse_why(request, &why);
    return NULL;
}

static bool make_function_get(struct driver_call *driver_call)
{
    struct lookup_call *call = container_of(driver_call, struct lookup_call, control.call);
    call->error = client_function_ask(call->control.request.client, &call->lookup, &call->why);
    return false;
}

static int end_function_get(struct control_call *control)
{
    struct lookup_call *call = container_of(control, struct lookup_call, control);
    const struct request *request = &control->request;
    if (!call->error)
        call->error =
            client_function_enter(request->client, call->number, &call->lookup, &call->why);
    if (call->error)
        return request_refuse_why(request, &call->why);
    return reply_send_with(
        request->worker, &(struct channel_packet){.opcode = PROTO_FUNCTION_INFO,
                                                  .serial = request->serial,
                                                  .client = request->number,
                                                  .body = &call->lookup.info,
                                                  .tail = call->lookup.layout,
                                                  .tail_bytes = call->lookup.info.parameters * 8u});
}

int control_function_get(struct request *request)
{
    const struct proto_function_get *wanted = request->body;
    int result = 0;
    struct lookup_call *call =
        begin_lookup(request, wanted->module, make_function_get, end_function_get, &result);
    if (!call)
        return result;
    call->number = wanted->function;
    control_call_leave(&call->control);
    return 0;
}

static bool make_global_get(struct driver_call *driver_call)
{
    struct lookup_call *call = container_of(driver_call, struct lookup_call, control.call);
    call->error = client_module_ask_global(call->control.request.client, &call->lookup, &call->why);
    return false;
}

static int answer_global(const struct request *request, const struct client_module_lookup *lookup)
{
    struct proto_global_info info = {.address = lookup->address, .count = lookup->count};
    return request_answer(request, PROTO_GLOBAL_INFO, &info);
}

static int end_global_get(struct control_call *control)
{
    struct lookup_call *call = container_of(control, struct lookup_call, control);
    if (!call->error)
        call->error =
            client_module_enter_global(control->request.client, &call->lookup, &call->why);
    return call->error ? request_refuse_why(&control->request, &call->why)
                       : answer_global(&control->request, &call->lookup);
}

int control_global_get(struct request *request)
{
    const struct proto_global_get *wanted = request->body;
    int result = 0;
    struct lookup_call *call =
        begin_lookup(request, wanted->module, make_global_get, end_global_get, &result);
    if (!call)
        return result;
    if (client_module_knows_global(&call->lookup)) {
        result = answer_global(request, &call->lookup);
        free(call);
        return result;
    }
    control_call_leave(&call->control);
    return 0;
}

struct function_call {
    struct control_call control;
    struct function function;
    struct proto_function_set set;
    struct proto_occupancy_get occupancy;
    uint32_t blocks;
    uint32_t error;
    struct error why;
};

/* As begin_lookup. */
static struct function_call *begin_function(const struct request *request, uint32_t number,
                                            bool (*make)(struct driver_call *call),
                                            int (*end)(struct control_call *call), int *result)
{
    struct error why;
    struct function_call *call = control_call_new(request, sizeof *call, make, end);
    if (!call) {
        *result = request_refuse(request, MESSAGE(worker_no_memory));
        return NULL;
    }
    if (!client_function_usable(request->client, number, &call->function, &why))
        return call;
    free(call);
    *result = request_refuse_why(request, &why);
    return NULL;
}

static bool make_function_set(struct driver_call *driver_call)
{
    struct function_call *call = container_of(driver_call, struct function_call, control.call);
    call->error = client_function_set_dynamic(call->control.request.client, &call->function,
                                              call->set.function, call->set.value, &call->why);
    return false;
}

static int end_function_set(struct control_call *control)
{
    struct function_call *call = container_of(control, struct function_call, control);
    struct client *client = control->request.client;
    if (call->error)
        return request_refuse_why(&control->request, &call->why);
    client_lock(client);
    struct function *function = &client->objects.functions[call->set.function - 1];
    function->dynamic_bytes = call->function.dynamic_bytes;
    function->dynamic_most = call->function.dynamic_most;
    pthread_mutex_unlock(&client->lock);
    return request_done(&control->request);
}

int control_function_set(struct request *request)
{
    const struct proto_function_set *wanted = request->body;
    int result = 0;
    struct function_call *call =
        begin_function(request, wanted->function, make_function_set, end_function_set, &result);
    if (!call)
        return result;
    call->set = *wanted;
    control_call_leave(&call->control);
    return 0;
}

static bool make_occupancy(struct driver_call *driver_call)
{
    struct function_call *call = container_of(driver_call, struct function_call, control.call);
    call->error = client_function_occupancy(call->control.request.client, &call->function,
                                            &call->occupancy, &call->blocks, &call->why);
    return false;
}

static int end_occupancy(struct control_call *control)
{
    struct function_call *call = container_of(control, struct function_call, control);
    struct proto_occupancy_info info = {.blocks = call->blocks};
    return call->error ? request_refuse_why(&control->request, &call->why)
                       : request_answer(&control->request, PROTO_OCCUPANCY_INFO, &info);
}

int control_occupancy_get(struct request *request)
{
    const struct proto_occupancy_get *wanted = request->body;
    int result = 0;
    struct function_call *call =
        begin_function(request, wanted->function, make_occupancy, end_occupancy, &result);
    if (!call)
        return result;
    call->occupancy = *wanted;
    control_call_leave(&call->control);
    return 0;
}
