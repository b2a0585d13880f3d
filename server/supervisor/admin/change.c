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

struct change_work {
    struct admin_work work; /* must stay first */
    struct admin_request request;
    char by[ADMIN_NAME];
    struct target *targets;
    size_t count, changing; /* how many have not answered */
    bool gone;              /* one left meanwhile */
    bool leaving;           /* the client that the request names had left before */
    struct error why;       /* of the first that could not be changed; number 0: none */
};

static void change_work_free(struct admin_work *work)
{
    struct change_work *pending = (struct change_work *)work;
    free(pending->targets);
    free(pending);
}

static void change_work_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct change_work *pending = (struct change_work *)work;
    if (late && !pending->why.number)
        error_set(&pending->why, MESSAGE(set_late), ADMIN_SET_MS / 1000);
    if (pending->why.number)
        admin_peer_refuse(peer, pending->why.number, "%s", pending->why.text);
    else
        admin_peer_answer(peer, admin_answer_limits(work->admin->supervisor, &pending->request));
}

/* The first that is noted counts. */
static void note_client(struct change_work *pending, uint32_t client, uint32_t error,
                        const char *text)
{
    if (!pending->why.number)
        error_set(&pending->why, error, MESSAGE_TEXT(set_client), client, text);
}

static void note_gpu(struct change_work *pending, uint32_t gpu, uint32_t error, const char *text)
{
    if (!pending->why.number)
        error_set(&pending->why, error, MESSAGE_TEXT(set_gpu), gpu, text);
}

/* ---- a user or a group ---- */

static void change_total(struct change_work *pending)
{
    const struct admin_request *request = &pending->request;
    struct account_owner owner = admin_request_owner(request);
    if (request->kind == ADMIN_SET)
        owner_total_set(pending->work.admin->supervisor, &owner, &request->total, pending->by,
                        &pending->why);
}

static bool is_limited(const struct change_work *pending)
{
    const struct supervisor *supervisor = pending->work.admin->supervisor;
    struct account_owner owner = admin_request_owner(&pending->request);
    struct total_view view;
    bool limited = false;
    ACCOUNT_FOR_EACH (i) {
        uint32_t count = allowance_resource(i)->of_device ? view_device_count(supervisor) : 1;
        for (uint32_t at = 0; at < count; at++) {
            owner_total_view(supervisor, &owner, i, at, &view);
            limited |= view.limit != PROTO_UNSET;
        }
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
    for (enum scalar i = 0; i < SCALARS; i++) {
        back.scalar_from[i] = now->scalar_from[i];
        if (change->scalar[i] != ALLOWANCE_UNSET)
            back.scalar[i] = now->scalar[i];
    }
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
    struct change_work *pending = context;
    const struct allowance *change = &pending->request.change;
    if (pending->request.target == ADMIN_TARGET_CLIENT && view->number == pending->request.number)
        pending->leaving = strcmp(view->state, "leaving") == 0;
    if (admin_request_concerns(&pending->request, view))
        pending->targets[pending->count++] = (struct target){
            .client = view->number,
            .takes = change_takes(change, &view->granted),
            .back = back_from(change, view),
        };
    return true;
}

static void on_put_back(void *context, uint32_t client, uint32_t error, const char *text)
{
    struct change_work *pending = context;
    if (error && error != PROTO_ERROR_NOT_FOUND)
        log_error(MESSAGE_TEXT(log_set_not_undone), client, text);
    admin_peer_work_came(&pending->work);
}

static void put_one_back(struct change_work *pending, const struct target *target)
{
    int result = change_put_back(pending->work.admin->supervisor, target->client, &target->back,
                                 pending->by, on_put_back, pending);
    pending->work.outstanding += result == 0;
    if (result < 0)
        log_error(MESSAGE_TEXT(log_set_not_undone), target->client, strerror(-result));
}

/* One client was refused, so all get their old limits back. Requests that had risen fall first. */
static void put_back(struct change_work *pending)
{
    for (int takes = 1; takes >= 0; takes--)
        for (size_t i = 0; i < pending->count; i++)
            if (pending->targets[i].changed && pending->targets[i].takes == (takes == 1))
                put_one_back(pending, &pending->targets[i]);
}

/* All clients have answered. If one of them left, the others still keep their new limits. */
static void change_work_settle(struct change_work *pending)
{
    bool any = false;
    for (size_t i = 0; i < pending->count; i++)
        any |= pending->targets[i].changed;
    if (pending->why.number)
        put_back(pending);
    else if (!any && pending->gone && pending->request.target == ADMIN_TARGET_USER)
        error_set(&pending->why, MESSAGE(set_user_gone), pending->request.number);
    else if (!any && pending->gone)
        error_set(&pending->why, MESSAGE(set_client_gone), pending->request.number);
}

static void on_set(void *context, uint32_t client, uint32_t error, const char *text)
{
    struct change_work *pending = context;
    for (size_t i = 0; i < pending->count; i++)
        if (pending->targets[i].client == client)
            pending->targets[i].changed = !error;
    if (error == PROTO_ERROR_NOT_FOUND)
        pending->gone = true;
    else if (error)
        note_client(pending, client, error, text);
    if (--pending->changing == 0)
        change_work_settle(pending);
    admin_peer_work_came(&pending->work);
}

/* A change that fits each client alone may not fit all of them together. */
static void note_failure(struct change_work *pending, uint32_t client, int result)
{
    if (!pending->why.number)
        change_check(pending->work.admin->supervisor, client, &pending->request.change,
                     &pending->why);
    note_client(pending, client, PROTO_ERROR_SERVER_RESOURCES, strerror(-result));
}

static void set_one(struct change_work *pending, struct target *target)
{
    int result = change_set(pending->work.admin->supervisor, target->client,
                            &pending->request.change, pending->by, on_set, pending);
    target->changed = result == 1;
    pending->changing += result == 0;
    pending->work.outstanding += result == 0;
    if (result < 0)
        note_failure(pending, target->client, result);
}

/* Lowers requests before it raises any: otherwise requests that fit in the end would not fit on the
 * way. A worker carries changes out in this order. */
static void set_all(struct change_work *pending)
{
    for (int takes = 0; takes < 2; takes++)
        for (size_t i = 0; i < pending->count && !pending->why.number; i++)
            if (pending->targets[i].takes == (takes == 1))
                set_one(pending, &pending->targets[i]);
    if (pending->changing == 0)
        change_work_settle(pending);
}

/* All clients' limits may change, or none does. */
static void check_all(struct change_work *pending)
{
    for (size_t i = 0; i < pending->count && !pending->why.number; i++)
        change_check(pending->work.admin->supervisor, pending->targets[i].client,
                     &pending->request.change, &pending->why);
    if (pending->count)
        return;
    /* A user without clients is shown with the limits that its future clients will have. */
    if (pending->request.target == ADMIN_TARGET_USER && pending->request.kind == ADMIN_GET &&
        is_limited(pending))
        return;
    if (pending->request.target == ADMIN_TARGET_USER)
        error_set(&pending->why, MESSAGE(user_not_attached), pending->request.number);
    else if (pending->leaving)
        error_set(&pending->why, MESSAGE(client_has_left), pending->request.number,
                  pending->request.number);
    else
        error_set(&pending->why, MESSAGE(client_not_attached), pending->request.number);
}

static int find_clients(struct change_work *pending)
{
    const struct supervisor *supervisor = pending->work.admin->supervisor;
    struct server_view totals;
    view_server(supervisor, &totals);
    pending->targets = calloc((size_t)totals.clients + 1, sizeof *pending->targets);
    if (!pending->targets)
        return -1;
    view_each_client(supervisor, target_collect, pending);
    return 0;
}

/* ---- a GPU ---- */

static void on_scheduled(void *context, uint32_t device, uint32_t error, const char *text)
{
    struct change_work *pending = context;
    if (error)
        note_gpu(pending, device, error, text);
    admin_peer_work_came(&pending->work);
}

static void change_gpu(struct change_work *pending)
{
    const struct admin_request *request = &pending->request;
    struct supervisor *supervisor = pending->work.admin->supervisor;
    if (request->number >= view_device_count(supervisor)) {
        error_set(&pending->why, MESSAGE(gpu_unknown), request->number);
        return;
    }
    if (request->kind != ADMIN_SET)
        return;
    int result = change_schedule(supervisor, request->number, &request->schedule, request->parts,
                                 pending->by, on_scheduled, pending);
    pending->work.outstanding += result == 0;
    if (result == -EBUSY)
        error_set(&pending->why, MESSAGE(reload_first));
    else if (result < 0)
        note_gpu(pending, request->number, PROTO_ERROR_SERVER_RESOURCES, strerror(-result));
}

static void change_clients(struct change_work *pending)
{
    if (find_clients(pending) < 0) {
        error_set(&pending->why, MESSAGE(server_no_memory));
        return;
    }
    check_all(pending);
    if (!pending->why.number && pending->request.kind == ADMIN_SET)
        set_all(pending);
}

void admin_change(struct admin_peer *peer, const struct admin_request *request)
{
    struct change_work *pending = calloc(1, sizeof *pending);
    if (!pending) {
        admin_peer_refuse(peer, MESSAGE(server_no_memory));
        return;
    }
    pending->work = (struct admin_work){.answer = change_work_answer, .free = change_work_free};
    pending->request = *request;
    admin_peer_name(peer, pending->by);
    admin_peer_work_begin(&pending->work, peer);
    if (request->target == ADMIN_TARGET_GPU)
        change_gpu(pending);
    else if (request->target == ADMIN_TARGET_GROUP || request->totals)
        change_total(pending);
    else
        change_clients(pending);
    admin_peer_work_wait(&pending->work, ADMIN_SET_MS);
}
