/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Loading a module takes four steps: the image is copied and looked up off the loop's thread, the
 * worker inspects it, memory for the module's variables is allocated, and the worker loads it. Each
 * step ends in load_failed, in load_ended or in the next step.
 */
#include "server/supervisor/session/owned/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/state_lost.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/account/heap.h"
#include "server/supervisor/client/image.h"
#include "server/supervisor/session/load_wait.h"
#include "server/supervisor/session/owned/memory.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"

enum module_state {
    MODULE_LOADING,
    MODULE_LOADED,
    MODULE_UNLOADING,
    MODULE_UNDONE /* the last server was loading it, and it is unloaded */
};

struct module {
    struct list_link in_session; /* in session->modules */
    uint32_t number;
    uint32_t row; /* of the session's table; module_changed marks it */
    enum module_state state;
    bool inspected; /* the worker knows the module's number */
    struct image *image;
    struct charge charge;         /* of the image's bytes */
    struct charge fd_charge;      /* of its descriptor, even if other modules share it */
    struct charge resident;       /* of variables that stay where the driver puts them */
    struct heap_block *variables; /* memory of the variables that move; NULL: none */
    enum proto_unsaved unsaved;   /* what no other worker can have of it */
    bool lost;                    /* and so its worker has taken it along */
};

static void module_changed(struct session *session, const struct module *module)
{
    kept_table_mark(session_tables(session, PART_MODULES), module->row);
}

static void module_enter(struct session *session, struct module *module, enum module_state state)
{
    module->state = state;
    module_changed(session, module);
}

static struct module *module_find(const struct session *session, uint32_t number)
{
    struct module *module;
    LIST_FOR_EACH (module, &session->modules, in_session)
        if (module->number == number && module->state == MODULE_LOADED)
            break;
    return module;
}

bool session_module_usable(struct session *session, uint32_t number, struct error *why)
{
    const struct module *module = module_find(session, number);
    if (!module)
        error_set(why, MESSAGE(module_foreign), number);
    else if (module->lost)
        state_lost_refuse(number, module->unsaved, why);
    return module && !module->lost;
}

/* Whether its kernels may run. */
static bool may_run(struct session *session, uint32_t number, struct error *why)
{
    if (!session_module_usable(session, number, why))
        return false;
    const enum proto_unsaved own = module_find(session, number)->unsaved;
    struct module *at;
    LIST_FOR_EACH (at, &session->modules, in_session)
        if (at->lost && state_lost_reaches(at->unsaved, own)) {
            state_lost_refuse_other(at->number, at->unsaved, why);
            return false;
        }
    return true;
}

void session_module_query(struct session *session, struct channel_message *message)
{
    struct proto_module_query body;
    struct error why;
    memcpy(&body, message->body, sizeof body);
    if (may_run(session, body.module, &why))
        session_answer(session, PROTO_DONE, message->header.serial, NULL, NULL, 0);
    else
        session_refuse_why(session, message->header.serial, &why);
}

static struct module *any_with_number(const struct session *session, uint32_t number)
{
    struct module *module;
    LIST_FOR_EACH (module, &session->modules, in_session)
        if (module->number == number)
            break;
    return module;
}

/* Enters a new module into the session's list and table. */
static void module_list(struct session *session, struct module *module)
{
    list_prepend(&session->modules, &module->in_session);
    session->module_count++;
    kept_table_add(session_tables(session, PART_MODULES), module, &module->row);
}

static struct module *module_new(struct session *session)
{
    struct module *module = calloc(1, sizeof *module);
    if (!module)
        return NULL;
    do
        module->number = ++session->next_module;
    while (!module->number || any_with_number(session, module->number));
    module_list(session, module);
    return module;
}

static void module_free(struct session *session, struct module *module)
{
    list_remove(&module->in_session);
    session->module_count--;
    kept_table_remove(session_tables(session, PART_MODULES), &module->row);
    image_release(module->image, session->server->closer);
    quota_return(&module->charge);
    quota_return(&module->fd_charge);
    quota_return(&module->resident);
    free(module);
}

/* The memory went with all the session's. A record of the session may still be written. */
void session_module_forget_memory(struct session *session)
{
    struct module *at;
    LIST_FOR_EACH (at, &session->modules, in_session) {
        at->variables = NULL;
        module_changed(session, at);
    }
}

/* The worker has nothing of this client any more. The variables' memory goes with all the
 * client's. */
void session_module_release(struct session *session)
{
    struct module *module;
    while ((module = LIST_FIRST(&session->modules, struct module, in_session)))
        module_free(session, module);
}

/* ---- loading ---- */

/* Refuses the request, and undoes the steps taken so far. */
static void load_failed(struct request *request, uint32_t error, const char *text)
{
    struct session *session = request->session;
    struct module *module = request->module;
    session_refuse(session, request->serial, error, "%s", text);
    /* Nobody is charged for what the worker keeps of a module that the session has not. */
    if (module->inspected) {
        struct proto_module_unload body = {.module = module->number};
        session_ask_surely(session, PROTO_MODULE_UNLOAD, &body, NULL, NULL);
    }
    if (module->variables)
        session_memory_return(session, module->variables);
    module_free(session, module);
    request_end(request);
}

/* The session ends, and session_module_release frees the module. */
static void load_ended(struct request *request)
{
    request_end(request);
}

static void load_refused(struct request *request, const struct worker_answer *answer)
{
    if (answer->outcome == WORKER_REFUSED)
        load_failed(request, answer->error, answer->text);
    else
        load_ended(request);
}

static void load_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    session_load_wait_end(request->session);
    if (answer->outcome != WORKER_ANSWERED) {
        load_refused(request, answer);
        return;
    }
    module_enter(request->session, request->module, MODULE_LOADED);
    session_pass(request->session, request->serial, answer);
    request_end(request);
}

static struct proto_worker_module_load load_message(const struct module *module, bool again)
{
    return (struct proto_worker_module_load){
        .module = module->number,
        .again = again,
        .global_base = module->variables ? module->variables->address : 0};
}

static void load_start(struct request *request)
{
    struct module *module = request->module;
    struct proto_worker_module_load body = load_message(module, false);
    if (session_ask(request->session, PROTO_WORKER_MODULE_LOAD, &body, load_answered, request) < 0)
        load_failed(request, MESSAGE(module_not_passed_on));
    else
        session_load_wait_begin(request->session);
}

static void variables_done(struct want *want, const struct want_answer *answer)
{
    struct request *request = container_of(want, struct request, want);
    struct error why;
    switch (answer->outcome) {
    case WANT_SERVED:
        heap_block_reserve(answer->block);
        request->module->variables = answer->block;
        module_changed(request->session, request->module);
        load_start(request);
        break;
    case WANT_REFUSED:
        error_set(&why, answer->error, MESSAGE_TEXT(module_variables), answer->text);
        load_failed(request, why.number, why.text);
        break;
    case WANT_SESSION_ENDED:
        load_ended(request);
        break;
    }
}

static void inspect_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct proto_worker_module_needs needs;
    if (answer->outcome != WORKER_ANSWERED) {
        load_refused(request, answer);
        return;
    }
    request->module->inspected = true;
    module_changed(request->session, request->module);
    memcpy(&needs, answer->message->body, sizeof needs);
    request->module->unsaved = needs.unsaved;
    const struct quota *culprit = NULL;
    if (quota_charge(&request->session->quotas[RESOURCE_MEMORY], &request->module->resident,
                     needs.resident_bytes, &culprit)) {
        struct error why, memory;
        session_quota_refuse(request->session, culprit, needs.resident_bytes, &memory);
        error_set(&why, memory.number, MESSAGE_TEXT(module_variables), memory.text);
        load_failed(request, why.number, why.text);
        return;
    }
    if (!needs.global_bytes) {
        load_start(request);
        return;
    }
    request->want.count = needs.global_bytes;
    request->want.done = variables_done;
    session_memory_want(&request->want);
}

static void copy_refused(struct request *request, int result)
{
    if (result == -EBADF)
        load_failed(request, MESSAGE(image_not_memfd));
    else if (result == -ENODATA)
        load_failed(request, MESSAGE(image_file_short));
    else if (result == -ENOEXEC)
        load_failed(request, MESSAGE(image_kind));
    else
        load_failed(request, MESSAGE(image_copy));
}

static void inspect_module(struct request *request, struct image *image)
{
    struct module *module = request->module;
    module->image = image;
    module_changed(request->session, module);
    struct proto_worker_module_inspect body = {.module = module->number,
                                               .count = module->image->bytes};
    struct channel_packet message = {.opcode = PROTO_WORKER_MODULE_INSPECT,
                                     .body = &body,
                                     .fds = &module->image->fd,
                                     .fd_count = 1};
    if (session_send(request->session, &message, inspect_answered, request) < 0)
        load_failed(request, MESSAGE(module_not_passed_on));
}

static int compare_run(struct request *request)
{
    return image_compare(request->image, request->known, &request->equal);
}

static void compare_done(struct request *request, int result);

/* Uses an image that the server has already if there is one of the same content. */
static void image_settle(struct request *request)
{
    struct server *server = request->session->server;
    request->known = image_find(&server->cache, request->image);
    if (request->known) {
        request_work(request, compare_run, compare_done);
        return;
    }
    image_admit(&server->cache, request->image);
    struct image *image = request->image;
    request->image = NULL;
    inspect_module(request, image);
}

static void compare_done(struct request *request, int result)
{
    if (result == -ECANCELED) {
        load_ended(request);
        return;
    }
    struct image *known = request->known;
    request->known = NULL;
    if (request->equal) {
        inspect_module(request, known);
    } else {
        image_release(known, request->session->server->closer);
        image_settle(request);
    }
}

static void copy_done(struct request *request, int result)
{
    if (result == -ECANCELED)
        load_ended(request);
    else if (result < 0)
        copy_refused(request, result);
    else
        image_settle(request);
}

static int copy_run(struct request *request)
{
    return image_copy(&request->image, &request->session->server->cache.key, request->fd,
                      request->count);
}

/* Charges the image's bytes, its descriptor, and the descriptor that the client passed. Refuses the
 * request if one is too much. */
static bool charge_all(struct session *session, struct request *request, struct module *module)
{
    const struct quota *culprit = NULL;
    char used[UNITS_TEXT], limit[UNITS_TEXT];
    if (quota_charge(&session->images, &module->charge, request->count, &culprit)) {
        session_refuse(session, request->serial, MESSAGE(image_memory_over_limit), culprit->name,
                       units_format_bytes(culprit->used, used),
                       units_format_bytes(culprit->limit, limit));
        return false;
    }
    if (quota_charge(&session->fds, &module->fd_charge, 1, &culprit) ||
        quota_charge(&session->fds, &request->charge, 1, &culprit)) {
        session_refuse(session, request->serial, MESSAGE(module_descriptors), culprit->name,
                       (unsigned long long)culprit->used, (unsigned long long)culprit->limit);
        return false;
    }
    return true;
}

void session_module_load(struct session *session, struct channel_message *message)
{
    struct proto_module_load body;
    uint64_t serial = message->header.serial;
    memcpy(&body, message->body, sizeof body);
    if (session->module_count >= SESSION_MODULES_MAX) {
        session_refuse(session, serial, MESSAGE(modules_max), session->module_count);
        return;
    }
    struct request *request = request_make(session, serial, PROTO_MODULE_LOADED);
    if (!request)
        return;
    request->count = body.count;
    struct module *module = request->module = module_new(session);
    if (!module) {
        session_refuse(session, serial, MESSAGE(module_record_no_memory));
        request_end(request);
        return;
    }
    if (!charge_all(session, request, module)) {
        module_free(session, module);
        request_end(request);
        return;
    }
    request->fd = channel_take_fd(message, 0);
    request_work(request, copy_run, copy_done);
}

/* ---- unloading ---- */

static void unload_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    struct module *module = request->module;
    session_pass(session, request->serial, answer);
    if (answer->outcome == WORKER_ANSWERED) {
        if (module->variables)
            session_memory_return(session, module->variables);
        objects_unload(&session->objects, module->number);
        module_free(session, module);
    } else {
        module_enter(session, module, MODULE_LOADED);
    }
    request_end(request);
}

void session_module_unload(struct session *session, struct channel_message *message)
{
    struct proto_module_unload body;
    memcpy(&body, message->body, sizeof body);
    struct module *module = module_find(session, body.module);
    if (!module) {
        session_refuse(session, message->header.serial, MESSAGE(module_foreign), body.module);
        return;
    }
    struct request *request = request_make(session, message->header.serial, PROTO_DONE);
    if (!request)
        return;
    request->module = module;
    module_enter(session, module, MODULE_UNLOADING);
    if (session_ask(session, PROTO_MODULE_UNLOAD, &body, unload_answered, request) < 0) {
        module_enter(session, module, MODULE_LOADED);
        session_refuse(session, request->serial, MESSAGE(module_not_passed_on));
        request_end(request);
    }
}

/* ---- another worker ---- */

void session_module_lose(struct session *session)
{
    struct error why;
    struct module *at;
    LIST_FOR_EACH (at, &session->modules, in_session) {
        if (at->state == MODULE_LOADING || !state_lost_with_worker(at->unsaved) || at->lost)
            continue;
        at->lost = true;
        /* The driver's memory went with the worker. */
        quota_return(&at->resident);
        module_changed(session, at);
        state_lost_refuse(at->number, at->unsaved, &why);
        session_log_about(session);
        log_notice(MESSAGE_TEXT(log_module_lost), session->number, session->name, why.text);
    }
}

static void tell_lost(struct session *session, const struct module *module,
                      worker_link_reply *answered)
{
    struct proto_worker_module_lost body = {.module = module->number, .unsaved = module->unsaved};
    struct channel_packet packet = {.opcode = PROTO_WORKER_MODULE_LOST, .body = &body};
    session_send_restoring(session, &packet, answered);
}

/* A load that is under way has its request among the held ones; its image is read before. */
void session_module_restore_images(struct session *session, worker_link_reply *answered)
{
    struct module *at;
    LIST_FOR_EACH (at, &session->modules, in_session) {
        if (at->lost)
            tell_lost(session, at, answered);
        if (!at->inspected || at->lost || at->state == MODULE_UNDONE)
            continue;
        struct proto_worker_module_inspect body = {.module = at->number, .count = at->image->bytes};
        struct channel_packet packet = {.opcode = PROTO_WORKER_MODULE_INSPECT,
                                        .body = &body,
                                        .fds = &at->image->fd,
                                        .fd_count = 1};
        session_send_restoring(session, &packet, answered);
    }
}

void session_module_restore_code(struct session *session, worker_link_reply *answered)
{
    struct module *at;
    LIST_FOR_EACH (at, &session->modules, in_session) {
        if (at->state == MODULE_LOADING || at->state == MODULE_UNDONE || at->lost)
            continue;
        struct proto_worker_module_load body = load_message(at, true);
        struct channel_packet packet = {.opcode = PROTO_WORKER_MODULE_LOAD, .body = &body};
        session_send_restoring(session, &packet, answered);
    }
}

/* ---- another server ---- */

/* One whose image is being copied is nothing yet. */
void session_module_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    struct session *session = context;
    const struct module *module = item;
    (void)row;
    if (!module || !module->image)
        return;
    pack_number(pack, module->number);
    pack_number(pack, module->state == MODULE_LOADED || module->state == MODULE_UNLOADING);
    pack_number(pack, module->image->bytes);
    pack_number(pack, module->image->hash);
    pack_number(pack, module->charge.amount);
    pack_number(pack, module->resident.amount);
    pack_number(pack, module->variables ? module->variables->address : 0);
    pack_number(pack, (uint64_t)module->unsaved << 1 | module->lost);
    keeper_pack_fd(session->server->keeper, pack, KEEPER_DATA, module->image->fd,
                   &module->image->kept);
}

/* The image is shared with other modules, of other sessions too. */
static struct image *image_unpack(struct server *server, uint64_t bytes, uint64_t hash,
                                  uint32_t kept)
{
    struct image *image;
    LIST_FOR_EACH (image, &server->cache.list, in_cache)
        if (image->kept == kept) {
            image->references++;
            return image;
        }
    image = calloc(1, sizeof *image);
    if (!image)
        return NULL;
    *image = (struct image){.fd = keeper_take(server->keeper, kept, KEEPER_DATA),
                            .bytes = bytes,
                            .hash = hash,
                            .kept = kept};
    image_admit(&server->cache, image);
    return image;
}

static int module_unpack(struct session *session, struct unpack *unpack)
{
    struct module *module = calloc(1, sizeof *module);
    if (!module)
        return -ENOMEM;
    module_list(session, module);
    module->number = (uint32_t)unpack_number_max(unpack, UINT32_MAX);
    module->state = unpack_number(unpack) ? MODULE_LOADED : MODULE_UNDONE;
    module->inspected = true;
    uint64_t bytes = unpack_number(unpack), hash = unpack_number(unpack);
    uint64_t charged = unpack_number(unpack), resident = unpack_number(unpack);
    uint64_t variables = unpack_number(unpack), unsaved = unpack_number(unpack);
    module->unsaved = (enum proto_unsaved)(unsaved >> 1);
    module->lost = unsaved & 1;
    uint32_t kept = unpack_fd(unpack);
    if (unpack->failed)
        return -EINVAL;
    quota_charge_again(&session->images, &module->charge, charged);
    quota_charge_again(&session->fds, &module->fd_charge, 1);
    if (resident)
        quota_charge_again(&session->quotas[RESOURCE_MEMORY], &module->resident, resident);
    if (variables && !(module->variables = heap_find(&session->heap, variables)))
        return -EINVAL;
    module->image = image_unpack(session->server, bytes, hash, kept);
    return !module->image ? -ENOMEM : module->image->fd < 0 ? -EBADF : 0;
}

int session_module_unpack(struct session *session, struct unpack *unpack)
{
    int result = 0;
    while (result == 0 && !unpack_is_whole(unpack))
        result =
            session->module_count < SESSION_MODULES_MAX ? module_unpack(session, unpack) : -EINVAL;
    return result;
}

/* The worker may never have heard of it. */
static void load_undone(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct module *module = request->module;
    if (answer->outcome == WORKER_ANSWERED || answer->outcome == WORKER_REFUSED) {
        if (module->variables)
            session_memory_return(request->session, module->variables);
        module_free(request->session, module);
    }
    request_end(request);
}

void session_module_resume(struct session *session)
{
    struct module *at;
    LIST_FOR_EACH (at, &session->modules, in_session) {
        struct proto_module_unload body = {.module = at->number};
        struct request *request = at->state == MODULE_UNDONE ? request_make_own(session) : NULL;
        if (!request)
            continue;
        request->module = at;
        if (session_ask(session, PROTO_MODULE_UNLOAD, &body, load_undone, request) < 0)
            request_end(request);
    }
}

bool session_module_is_lost(const struct session *session, uint32_t number)
{
    const struct module *module = any_with_number(session, number);
    return module && module->lost;
}
