/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/admin_times.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/change.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/view.h"

/* One client whose limits are set. */
struct target {
    uint32_t client;
    bool takes;            /* its requests rise: other clients' requests have to fall first */
    bool changed;          /* it has the new values */
    struct allowance back; /* the change that restores its old values */
};

struct setting {
    struct admin_work work; /* must stay first */
    struct admin_request request;
    char by[ADMIN_NAME];
    struct target *targets;
    size_t count, changing; /* how many have not answered */
    bool gone;              /* one left meanwhile */
    struct error why;       /* of the first that could not be changed; number 0: none */
};

static void setting_free(struct admin_work *work)
{
    struct setting *setting = (struct setting *)work;
    free(setting->targets);
    free(setting);
}

static void setting_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct setting *setting = (struct setting *)work;
    if (late && !setting->why.number)
        error_set(&setting->why, MESSAGE(set_late), ADMIN_SET_MS / 1000);
    if (setting->why.number)
        admin_peer_refuse(peer, setting->why.number, "%s", setting->why.text);
    else
        admin_peer_answer(peer, admin_answer_limits(work->admin->supervisor, &setting->request));
}

/* The first that is noted counts. */
static void note_client(struct setting *setting, uint32_t client, uint32_t error, const char *text)
{
    if (!setting->why.number)
        error_set(&setting->why, error, MESSAGE_TEXT(set_client), client, text);
}

static void note_gpu(struct setting *setting, uint32_t gpu, uint32_t error, const char *text)
{
    if (!setting->why.number)
        error_set(&setting->why, error, MESSAGE_TEXT(set_gpu), gpu, text);
}

/* ---- a user or a group ---- */

static void change_total(struct setting *setting)
{
    const struct admin_request *request = &setting->request;
    struct account_owner owner = admin_request_owner(request);
    if (request->kind == ADMIN_SET)
        owner_total_set(setting->work.admin->supervisor, &owner, &request->total, setting->by,
                        &setting->why);
}

static bool is_limited(const struct setting *setting)
{
    const struct supervisor *supervisor = setting->work.admin->supervisor;
    struct account_owner owner = admin_request_owner(&setting->request);
    struct total_view view;
    owner_total_view(supervisor, &owner, OWNER_TOTAL_HOST, &view);
    bool limited = view.limit != PROTO_UNSET;
    for (uint32_t i = 0; i < view_device_count(supervisor); i++) {
        owner_total_view(supervisor, &owner, i, &view);
        limited |= view.limit != PROTO_UNSET;
    }
    return limited;
}

/* ---- clients ---- */

/* The change that restores the present values of everything that `change` changes. */
static struct allowance back_from(const struct allowance *change, const struct client_view *view)
{
    struct allowance back = allowance_none;
    const struct allowance *now = &view->granted;
    for (enum resource i = 0; i < RESOURCES; i++) {
        back.of_from[i] = now->of_from[i];
        if (allowance_has(change, i, ALLOWANCE_REQUEST))
            back.of[i].request = now->of[i].request;
        if (allowance_has(change, i, ALLOWANCE_LIMIT))
            back.of[i].limit = now->of[i].limit;
    }
    if (change->priority != ALLOWANCE_UNSET)
        back.priority = now->priority;
    return back;
}

/* Whether a change raises a request. Changes that lower requests come before it. */
static bool change_takes(const struct allowance *change, const struct allowance *now)
{
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_resource(i)->by_worker && change->of[i].request != ALLOWANCE_UNSET &&
            change->of[i].request > now->of[i].request)
            return true;
    return false;
}

static bool target_collect(void *context, const struct client_view *view)
{
    struct setting *setting = context;
    const struct allowance *change = &setting->request.change;
    if (admin_request_concerns(&setting->request, view))
        setting->targets[setting->count++] = (struct target){
            .client = view->number,
            .takes = change_takes(change, &view->granted),
            .back = back_from(change, view),
        };
    return true;
}

static void on_put_back(void *context, uint32_t client, uint32_t error, const char *text)
{
    struct setting *setting = context;
    if (error && error != PROTO_ERROR_NOT_FOUND)
        log_error(MESSAGE_TEXT(log_set_not_undone), client, text);
    admin_work_came(&setting->work);
}

static void put_one_back(struct setting *setting, const struct target *target)
{
    int result = change_put_back(setting->work.admin->supervisor, target->client, &target->back,
                                 setting->by, on_put_back, setting);
    setting->work.outstanding += result == 0;
    if (result < 0)
        log_error(MESSAGE_TEXT(log_set_not_undone), target->client, strerror(-result));
}

/* One client was refused, so all get their old limits back. Requests that had risen fall first. */
static void put_back(struct setting *setting)
{
    for (int takes = 1; takes >= 0; takes--)
        for (size_t i = 0; i < setting->count; i++)
            if (setting->targets[i].changed && setting->targets[i].takes == (takes == 1))
                put_one_back(setting, &setting->targets[i]);
}

/* All clients have answered. If one of them left, the others still keep their new limits. */
static void setting_settle(struct setting *setting)
{
    bool any = false;
    for (size_t i = 0; i < setting->count; i++)
        any |= setting->targets[i].changed;
    if (setting->why.number)
        put_back(setting);
    else if (!any && setting->gone && setting->request.target == ADMIN_TARGET_USER)
        error_set(&setting->why, MESSAGE(set_user_gone), setting->request.number);
    else if (!any && setting->gone)
        error_set(&setting->why, MESSAGE(set_client_gone), setting->request.number);
}

static void on_set(void *context, uint32_t client, uint32_t error, const char *text)
{
    struct setting *setting = context;
    for (size_t i = 0; i < setting->count; i++)
        if (setting->targets[i].client == client)
            setting->targets[i].changed = !error;
    if (error == PROTO_ERROR_NOT_FOUND)
        setting->gone = true;
    else if (error)
        note_client(setting, client, error, text);
    if (--setting->changing == 0)
        setting_settle(setting);
    admin_work_came(&setting->work);
}

/* A change that fits each client alone may not fit all of them together. */
static void note_failure(struct setting *setting, uint32_t client, int result)
{
    if (!setting->why.number)
        change_check(setting->work.admin->supervisor, client, &setting->request.change,
                     &setting->why);
    note_client(setting, client, PROTO_ERROR_SERVER_RESOURCES, strerror(-result));
}

static void set_one(struct setting *setting, struct target *target)
{
    int result = change_set(setting->work.admin->supervisor, target->client,
                            &setting->request.change, setting->by, on_set, setting);
    target->changed = result == 1;
    setting->changing += result == 0;
    setting->work.outstanding += result == 0;
    if (result < 0)
        note_failure(setting, target->client, result);
}

/* Lowers requests before it raises any: otherwise requests that fit in the end would not fit on the
 * way. A worker carries changes out in this order. */
static void set_all(struct setting *setting)
{
    for (int takes = 0; takes < 2; takes++)
        for (size_t i = 0; i < setting->count && !setting->why.number; i++)
            if (setting->targets[i].takes == (takes == 1))
                set_one(setting, &setting->targets[i]);
    if (setting->changing == 0)
        setting_settle(setting);
}

/* All clients' limits may change, or none does. */
static void check_all(struct setting *setting)
{
    for (size_t i = 0; i < setting->count && !setting->why.number; i++)
        change_check(setting->work.admin->supervisor, setting->targets[i].client,
                     &setting->request.change, &setting->why);
    if (setting->count)
        return;
    /* A user without clients is shown with the limits that its future clients will have. */
    if (setting->request.target == ADMIN_TARGET_USER && setting->request.kind == ADMIN_GET &&
        is_limited(setting))
        return;
    if (setting->request.target == ADMIN_TARGET_USER)
        error_set(&setting->why, MESSAGE(user_not_attached), setting->request.number);
    else
        error_set(&setting->why, MESSAGE(client_not_attached), setting->request.number);
}

static int find_clients(struct setting *setting)
{
    const struct supervisor *supervisor = setting->work.admin->supervisor;
    struct server_view totals;
    view_server(supervisor, &totals);
    setting->targets = calloc((size_t)totals.clients + 1, sizeof *setting->targets);
    if (!setting->targets)
        return -1;
    view_each_client(supervisor, target_collect, setting);
    return 0;
}

/* ---- a GPU ---- */

static void on_scheduled(void *context, uint32_t device, uint32_t error, const char *text)
{
    struct setting *setting = context;
    if (error)
        note_gpu(setting, device, error, text);
    admin_work_came(&setting->work);
}

static void change_gpu(struct setting *setting)
{
    const struct admin_request *request = &setting->request;
    struct supervisor *supervisor = setting->work.admin->supervisor;
    if (request->number >= view_device_count(supervisor)) {
        error_set(&setting->why, MESSAGE(gpu_unknown), request->number);
        return;
    }
    if (request->kind != ADMIN_SET)
        return;
    int result = change_schedule(supervisor, request->number, &request->schedule, request->parts,
                                 setting->by, on_scheduled, setting);
    setting->work.outstanding += result == 0;
    if (result == -EBUSY)
        error_set(&setting->why, MESSAGE(reload_first));
    else if (result < 0)
        note_gpu(setting, request->number, PROTO_ERROR_SERVER_RESOURCES, strerror(-result));
}

static void change_clients(struct setting *setting)
{
    if (find_clients(setting) < 0) {
        error_set(&setting->why, MESSAGE(server_no_memory));
        return;
    }
    check_all(setting);
    if (!setting->why.number && setting->request.kind == ADMIN_SET)
        set_all(setting);
}

void admin_change(struct admin_peer *peer, const struct admin_request *request)
{
    struct setting *setting = calloc(1, sizeof *setting);
    if (!setting) {
        admin_peer_refuse(peer, MESSAGE(server_no_memory));
        return;
    }
    setting->work = (struct admin_work){.answer = setting_answer, .free = setting_free};
    setting->request = *request;
    admin_peer_name(peer, setting->by);
    admin_work_begin(&setting->work, peer);
    if (request->target == ADMIN_TARGET_GPU)
        change_gpu(setting);
    else if (request->target == ADMIN_TARGET_GROUP || request->totals)
        change_total(setting);
    else
        change_clients(setting);
    admin_work_wait(&setting->work, ADMIN_SET_MS);
}
