/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Loading: the image is copied off the loop's thread, the worker inspects the copy,
 * memory for the module's variables is allocated, the worker loads. Each step ends
 * in module_failed or in the next one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/units.h"
#include "server/supervisor/session.h"
#include "server/supervisor/supervisor_private.h"

enum module_state { MODULE_LOADING, MODULE_LOADED, MODULE_UNLOADING };

struct module {
    struct module *next;
    uint32_t number;
    enum module_state state;
    bool inspected; /* the worker knows this number */
    struct image *image;
    struct charge charge;         /* of the image's bytes */
    struct charge fd_charge;      /* of its descriptor, though others may share it */
    struct charge resident;       /* of variables that stay where the driver puts them */
    struct heap_block *variables; /* NULL if it has none */
};

static struct module *find(const struct session *session, uint32_t number)
{
    struct module *module = session->modules;
    while (module && (module->number != number || module->state != MODULE_LOADED))
        module = module->next;
    return module;
}

bool session_module_known(const struct session *session, uint32_t module)
{
    return find(session, module) != NULL;
}

static bool number_taken(const struct session *session, uint32_t number)
{
    for (const struct module *module = session->modules; module; module = module->next)
        if (module->number == number)
            return true;
    return false;
}

static struct module *module_new(struct session *session)
{
    struct module *module = calloc(1, sizeof *module);
    if (!module)
        return NULL;
    do
        module->number = ++session->next_module;
    while (!module->number || number_taken(session, module->number));
    module->next = session->modules;
    session->modules = module;
    session->module_count++;
    return module;
}

static void module_free(struct session *session, struct module *module)
{
    struct module **link = &session->modules;
    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    session->module_count--;
    image_release(module->image);
    charge_return(&module->charge);
    charge_return(&module->fd_charge);
    charge_return(&module->resident);
    free(module);
}

/* The worker has nothing of this client any more; the variables went with its memory. */
void session_module_release(struct session *session)
{
    while (session->modules)
        module_free(session, session->modules);
}

/* ---- loading ---- */

/* A request ended without a module. error 0: the session leaves, and takes the module with it. */
static void module_failed(struct request *request, uint32_t error, const char *text)
{
    struct session *session = request->session;
    struct module *module = request->module;
    if (error && !session_leaves(session)) {
        session_refuse(session, request->serial, error, "%s", text);
        /* The answer may have found the client gone. */
        if (!session_leaves(session)) {
            if (module->inspected) {
                struct proto_module_unload body = {.module = module->number};
                session_ask(session, PROTO_MODULE_UNLOAD, &body, NULL, 0, NULL, NULL);
            }
            if (module->variables) {
                module->variables->reserved = false;
                session_memory_return(session, module->variables);
            }
            module_free(session, module);
        }
    }
    session_request_end(request);
}

static void failed_by_worker(struct request *request, const struct channel_message *answer)
{
    struct proto_failed failed = {.error = PROTO_ERROR_UNKNOWN,
                                  .text = "the worker gave an answer that is none"};
    if (answer && answer->header.opcode == PROTO_FAILED)
        memcpy(&failed, answer->body, sizeof failed);
    if (!answer)
        failed.error = PROTO_ERROR_SUCCESS;
    module_failed(request, failed.error, failed.text);
}

static void loaded(void *context, struct channel_message *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    struct module *module = request->module;
    if (!answer || answer->header.opcode != PROTO_MODULE_LOADED) {
        failed_by_worker(request, answer);
        return;
    }
    module->state = MODULE_LOADED;
    session_pass(session, request->serial, answer);
    session_request_end(request);
}

static void load(struct request *request)
{
    struct module *module = request->module;
    struct proto_worker_module_load body = {.module = module->number,
                                            .global_base =
                                                module->variables ? module->variables->address : 0};
    if (session_ask(request->session, PROTO_WORKER_MODULE_LOAD, &body, NULL, 0, loaded, request) <
        0)
        module_failed(request, PROTO_ERROR_WORKER_LOST, "it could not be passed on to the worker");
}

static void got_variables(struct want *want, struct heap_block *block, uint32_t error,
                          const char *text)
{
    struct request *request = (void *)((char *)want - offsetof(struct request, want));
    if (!block) {
        char whole[380];
        snprintf(whole, sizeof whole, "memory for the module's variables: %.340s", text);
        module_failed(request, error, whole);
        return;
    }
    block->reserved = true;
    request->module->variables = block;
    load(request);
}

static void inspected(void *context, struct channel_message *answer)
{
    struct request *request = context;
    struct proto_worker_module_needs needs;
    if (!answer || answer->header.opcode != PROTO_WORKER_MODULE_NEEDS ||
        session_leaves(request->session)) {
        failed_by_worker(request, session_leaves(request->session) ? NULL : answer);
        return;
    }
    request->module->inspected = true;
    memcpy(&needs, answer->body, sizeof needs);
    const struct quota *culprit = NULL;
    if (quota_charge(&request->session->memory, &request->module->resident, needs.resident_bytes,
                     &culprit)) {
        char text[380] = "memory for the module's variables: ";
        size_t used = strlen(text);
        session_quota_explain(request->session, culprit, needs.resident_bytes, text + used,
                              sizeof text - used);
        module_failed(request, PROTO_ERROR_OUT_OF_MEMORY, text);
        return;
    }
    if (!needs.global_bytes) {
        load(request);
        return;
    }
    request->want.count = needs.global_bytes;
    request->want.done = got_variables;
    session_memory_want(&request->want);
}

static void copied(struct job *job, int result)
{
    struct request *request = (void *)((char *)job - offsetof(struct request, job));
    struct session *session = request->session;
    if (session_leaves(session)) {
        module_failed(request, PROTO_ERROR_SUCCESS, NULL);
        return;
    }
    if (result < 0) {
        const char *text = result == -EBADF ? "the image must come in a memory file (memfd_create)"
                           : result == -ENODATA
                               ? "the image's file is shorter than the message says"
                               : "the server could not copy the image";
        module_failed(request,
                      result == -EBADF || result == -ENODATA ? PROTO_ERROR_INVALID_IMAGE
                                                             : PROTO_ERROR_SERVER_RESOURCES,
                      text);
        return;
    }
    struct module *module = request->module;
    module->image = image_admit(&session->supervisor->cache, request->image);
    request->image = NULL;
    struct proto_worker_module_inspect body = {.module = module->number, .count = request->count};
    if (session_ask(session, PROTO_WORKER_MODULE_INSPECT, &body, &module->image->fd, 1, inspected,
                    request) < 0)
        module_failed(request, PROTO_ERROR_WORKER_LOST, "it could not be passed on to the worker");
}

static int copy(struct job *job)
{
    struct request *request = (void *)((char *)job - offsetof(struct request, job));
    return image_copy(&request->image, &request->session->supervisor->cache.key, request->fd,
                      request->count);
}

/* The image's bytes, its descriptor, and the one that the client passed. Refuses if one is too
 * many. */
static bool charge_all(struct session *session, struct request *request, struct module *module)
{
    const struct quota *culprit = NULL;
    char used[UNITS_TEXT], limit[UNITS_TEXT];
    if (quota_charge(&session->images, &module->charge, request->count, &culprit)) {
        session_refuse(session, request->serial, PROTO_ERROR_OUT_OF_MEMORY,
                       "%s: %s of %s are in use: unload modules", culprit->name,
                       units_format_bytes(culprit->used, used),
                       units_format_bytes(culprit->limit, limit));
        return false;
    }
    if (quota_charge(&session->fds, &module->fd_charge, 1, &culprit) ||
        quota_charge(&session->fds, &request->charge, 1, &culprit)) {
        session_refuse(session, request->serial, PROTO_ERROR_SERVER_RESOURCES,
                       "%s: %" PRIu64 " of %" PRIu64 " are in use: unload modules or free memory",
                       culprit->name, culprit->used, culprit->limit);
        return false;
    }
    return true;
}

void session_module_load(struct session *session, struct channel_message *message)
{
    struct proto_module_load body;
    uint32_t serial = message->header.serial;
    memcpy(&body, message->body, sizeof body);
    if (session->module_count >= SESSION_MODULES_MOST) {
        session_refuse(session, serial, PROTO_ERROR_TOO_MANY_OBJECTS,
                       "the client has %u modules, as many as it may have: unload some",
                       session->module_count);
        return;
    }
    struct request *request = session_request(session, serial, PROTO_MODULE_LOADED);
    if (!request)
        return;
    request->count = body.count;
    struct module *module = request->module = module_new(session);
    if (!module) {
        session_refuse(session, serial, PROTO_ERROR_SERVER_RESOURCES,
                       "the server has no memory for another module");
        session_request_end(request);
        return;
    }
    if (!charge_all(session, request, module)) {
        if (!session_leaves(session))
            module_free(session, module);
        session_request_end(request);
        return;
    }
    request->fd = channel_take_fd(message, 0);
    if (job_start(&request->job, session->supervisor->loop, copy, copied) < 0)
        module_failed(request, PROTO_ERROR_SERVER_RESOURCES, "the server has no thread to copy it");
}

/* ---- unloading ---- */

static void unloaded(void *context, struct channel_message *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    struct module *module = request->module;
    if (answer && !session_leaves(session)) {
        session_pass(session, request->serial, answer);
        if (!session_leaves(session) && answer->header.opcode == PROTO_DONE) {
            if (module->variables)
                session_memory_return(session, module->variables);
            module_free(session, module);
        } else {
            module->state = MODULE_LOADED;
        }
    }
    session_request_end(request);
}

void session_module_unload(struct session *session, struct channel_message *message)
{
    struct proto_module_unload body;
    memcpy(&body, message->body, sizeof body);
    struct module *module = find(session, body.module);
    if (!module) {
        session_refuse(session, message->header.serial, PROTO_ERROR_INVALID_HANDLE,
                       "module %u is not a module of this client", body.module);
        return;
    }
    struct request *request = session_request(session, message->header.serial, PROTO_DONE);
    if (!request)
        return;
    request->module = module;
    module->state = MODULE_UNLOADING;
    if (session_ask(session, PROTO_MODULE_UNLOAD, &body, NULL, 0, unloaded, request) < 0)
        unloaded(request, NULL);
}
