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
#include "server/supervisor/admin/saved.h"
#include "server/supervisor/change.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/saved.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/transaction.h"
#include "server/supervisor/view.h"

struct change_work {
    struct admin_work work; /* must stay first */
    struct admin_request request;
    char by[ADMIN_NAME];
    struct transaction transaction; /* its `why`: why the request is refused */
    size_t clients;                 /* that the request is about */
    bool gone;                      /* one left meanwhile */
    bool leaving;                   /* the client that the request names had left before */
};

static void change_work_free(struct admin_work *work)
{
    struct change_work *pending = (struct change_work *)work;
    admin_request_free(&pending->request);
    transaction_free(&pending->transaction);
    free(pending);
}

static void change_work_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct change_work *pending = (struct change_work *)work;
    struct error *why = &pending->transaction.why;
    const bool stays = pending->request.target == ADMIN_TARGET_GPU || pending->request.totals;
    /* A late worker's changes of clients are taken back when the answers come; a schedule and a
     * total stay. */
    if (late && !why->number && !stays)
        error_set(why, MESSAGE(set_late), ADMIN_SET_MS / 1000);
    if (why->number)
        admin_peer_refuse(peer, why->number, "%s", why->text);
    else if (late)
        admin_peer_refuse(peer, MESSAGE(set_late), ADMIN_SET_MS / 1000);
    else
        admin_peer_answer(peer, admin_answer_limits(work->admin->supervisor, &pending->request));
}

/* ---- what outlives the server ---- */

static void save_refuse(struct change_work *pending, int result)
{
    error_set(&pending->transaction.why, MESSAGE(set_not_saved),
              supervisor_saved(pending->work.admin->supervisor)->file, strerror(-result));
}

static void save_ended(void *context, int result)
{
    struct change_work *pending = context;
    if (result < 0)
        save_refuse(pending, result);
    admin_peer_work_came(&pending->work);
}

/* The change is made, or refused. The file is written before the answer says that it is kept. */
static void change_save(struct change_work *pending)
{
    struct supervisor *supervisor = pending->work.admin->supervisor;
    const struct admin_request *request = &pending->request;
    if (pending->transaction.why.number || request->kind != ADMIN_SET || !request->values)
        return;
    int result = admin_saved_note(supervisor, request);
    if (result > 0)
        result = saved_write(supervisor_saved(supervisor), save_ended, pending) < 0 ? -ENOMEM : 1;
    pending->work.outstanding += result > 0;
    if (result < 0)
        save_refuse(pending, result);
}

/* ---- the transaction ---- */

static int move_make(void *context, const struct transaction_move *move, bool back,
                     change_done *done, void *of_done)
{
    struct change_work *pending = context;
    struct supervisor *supervisor = pending->work.admin->supervisor;
    const struct change_asker asker = {pending->by, done, of_done};
    if (move->subject == TRANSACTION_DEVICE)
        return change_schedule(supervisor, move->number,
                               back ? &move->device.back : &move->device.to, move->device.parts,
                               &asker);
    return back ? change_put_back(supervisor, move->number, &move->client.back, &asker)
                : change_set(supervisor, move->number, &move->client.to, &asker);
}

static void refuse_schedule(uint32_t gpu, int result, uint32_t error, const char *text,
                            struct error *why)
{
    if (result == -EBUSY)
        error_set(why, MESSAGE(reload_first));
    else if (result < 0)
        error_set(why, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(set_gpu), gpu, strerror(-result));
    else
        error_set(why, error, MESSAGE_TEXT(set_gpu), gpu, text);
}

/* If one of the clients left, the others still keep their new limits. */
static bool move_refuse(void *context, const struct transaction_move *move, int result,
                        uint32_t error, const char *text, struct error *why)
{
    struct change_work *pending = context;
    if (move->subject == TRANSACTION_DEVICE) {
        refuse_schedule(move->number, result, error, text, why);
        return true;
    }
    if (error == PROTO_ERROR_NOT_FOUND) {
        pending->gone = true;
        return false;
    }
    if (error)
        error_set(why, error, MESSAGE_TEXT(set_client), move->number, text);
    /* A change that fits each client alone may not fit all of them together. */
    else if (!change_check(pending->work.admin->supervisor, move->number, &move->client.to, why))
        error_set(why, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(set_client), move->number,
                  strerror(-result));
    return true;
}

static void move_lose(void *context, const struct transaction_move *move, int result,
                      uint32_t error, const char *text)
{
    (void)context;
    if (error != PROTO_ERROR_NOT_FOUND)
        log_error(MESSAGE_TEXT(log_set_not_undone), move->number, error ? text : strerror(-result));
}

static void change_settle(struct change_work *pending)
{
    struct error *why = &pending->transaction.why;
    change_save(pending);
    if (why->number || !pending->gone || transaction_made_any(&pending->transaction))
        return;
    if (pending->request.target == ADMIN_TARGET_USER)
        error_set(why, MESSAGE(set_user_gone), pending->request.number);
    else
        error_set(why, MESSAGE(set_client_gone), pending->request.number);
}

/* Goes on at once, not in the loop's next turn: a reload that began meanwhile then waits for what
 * is taken back. */
static void change_ready(void *context)
{
    struct change_work *pending = context;
    if (!transaction_advance(&pending->transaction))
        return;
    change_settle(pending);
    admin_peer_work_came(&pending->work);
}

static const struct transaction_work change_moves = {
    .make = move_make, .refuse = move_refuse, .lose = move_lose, .ready = change_ready};

static void change_carry_out(struct change_work *pending)
{
    pending->transaction.pipelined = true;
    if (!transaction_advance(&pending->transaction))
        pending->work.outstanding++;
    else
        change_settle(pending);
}

/* ---- a user, a group or a control group ---- */

static void total_answered(void *context, uint32_t error, const char *text)
{
    struct change_work *pending = context;
    if (error)
        error_set(&pending->transaction.why, error, "%s", text);
    change_save(pending);
    admin_peer_work_came(&pending->work);
}

static void change_total(struct change_work *pending)
{
    const struct admin_request *request = &pending->request;
    struct account_owner owner = admin_request_owner(request);
    bool over;
    if (request->kind != ADMIN_SET)
        return;
    const struct reload_asker asker = {pending->by, total_answered, pending};
    uint32_t error = owner_total_set(pending->work.admin->supervisor, &owner, &request->total,
                                     &asker, &over, &pending->transaction.why);
    if (over)
        change_save(pending);
    pending->work.outstanding += !error && !over;
}

static bool is_limited(const struct change_work *pending)
{
    const struct supervisor *supervisor = pending->work.admin->supervisor;
    struct account_owner owner = admin_request_owner(&pending->request);
    struct total_view view;
    bool limited = false;
    for (enum resource i = 0; i < RESOURCES; i++) {
        uint32_t count = allowance_resource(i)->of_device ? view_device_count(supervisor) : 1;
        for (uint32_t at = 0; at < count; at++) {
            owner_total_view(supervisor, &owner, i, at, &view);
            limited |= view.limit != PROTO_UNSET || view.request != PROTO_UNSET;
        }
    }
    return limited;
}

/* ---- clients ---- */

/* Requests that rise come after those that fall: otherwise requests that fit in the end would not
 * fit on the way. */
enum rank { RANK_GIVES, RANK_TAKES };

/* Whether a change raises a request. */
static bool change_takes(const struct allowance *change, const struct allowance *now)
{
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_resource(i)->by_worker && change->of[i].request != ALLOWANCE_UNSET &&
            change->of[i].request > now->of[i].request)
            return true;
    return false;
}

/* Adds to a change the values that go back to the configuration's, which each client has its own
 * of. False: why says what is wrong. */
static bool add_configured(struct change_work *pending, uint32_t client, struct allowance *change)
{
    const struct admin_request *request = &pending->request;
    struct allowance says;
    if (!(request->back_requests | request->back_limits | request->back_scalars))
        return true;
    if (change_configured(pending->work.admin->supervisor, client, &says,
                          &pending->transaction.why))
        return false;
    allowance_take(change, &says, request->back_requests, request->back_limits,
                   request->back_scalars);
    return true;
}

static bool client_collect(void *context, const struct client_view *view)
{
    struct change_work *pending = context;
    struct allowance change = pending->request.change;
    if (pending->request.target == ADMIN_TARGET_CLIENT && view->number == pending->request.number)
        pending->leaving = strcmp(view->state, "leaving") == 0;
    if (!admin_request_concerns(&pending->request, view))
        return true;
    pending->clients++;
    if (pending->request.kind == ADMIN_SET && add_configured(pending, view->number, &change))
        transaction_add_client(&pending->transaction,
                               change_takes(&change, &view->own) ? RANK_TAKES : RANK_GIVES,
                               view->number, &change, &view->own);
    return !pending->transaction.why.number;
}

/* All clients' limits may change, or none does. */
static void check_all(struct change_work *pending)
{
    struct transaction *transaction = &pending->transaction;
    for (size_t i = 0; i < transaction->count && !transaction->why.number; i++)
        change_check(pending->work.admin->supervisor, transaction->moves[i].number,
                     &transaction->moves[i].client.to, &transaction->why);
    if (pending->clients)
        return;
    /* A user without clients is shown with the limits that its future clients will have. */
    if (pending->request.target == ADMIN_TARGET_USER && pending->request.kind == ADMIN_GET &&
        is_limited(pending))
        return;
    if (pending->request.target == ADMIN_TARGET_USER)
        error_set(&transaction->why, MESSAGE(user_not_attached), pending->request.number);
    else if (pending->leaving)
        error_set(&transaction->why, MESSAGE(client_has_left), pending->request.number,
                  pending->request.number);
    else
        error_set(&transaction->why, MESSAGE(client_not_attached), pending->request.number);
}

static void change_clients(struct change_work *pending)
{
    const struct supervisor *supervisor = pending->work.admin->supervisor;
    struct server_view server;
    view_server(supervisor, &server);
    if (transaction_init(&pending->transaction, server.clients, &change_moves, pending) < 0) {
        error_set(&pending->transaction.why, MESSAGE(server_no_memory));
        return;
    }
    view_each_client(supervisor, client_collect, pending);
    check_all(pending);
    change_carry_out(pending);
}

/* ---- a GPU ---- */

static void change_gpu(struct change_work *pending)
{
    const struct admin_request *request = &pending->request;
    const struct supervisor *supervisor = pending->work.admin->supervisor;
    struct device_view view;
    if (request->number >= view_device_count(supervisor)) {
        error_set(&pending->transaction.why, MESSAGE(gpu_unknown), request->number);
        return;
    }
    if (request->kind != ADMIN_SET)
        return;
    if (request->newcomers) {
        change_newcomers(pending->work.admin->supervisor, request->number, &request->change,
                         request->back_limits, request->back_scalars);
        log_notice(MESSAGE_TEXT(log_new_clients_set), request->number, pending->by);
        return;
    }
    if (transaction_init(&pending->transaction, 1, &change_moves, pending) < 0) {
        error_set(&pending->transaction.why, MESSAGE(server_no_memory));
        return;
    }
    struct schedule to = request->schedule;
    view_device(supervisor, request->number, &view);
    schedule_merge(&to, &view.configured, request->back);
    transaction_add_device(&pending->transaction, RANK_GIVES, request->number, &to, &view.schedule,
                           request->parts);
    change_carry_out(pending);
}

static void change_begin(struct change_work *pending)
{
    const struct admin_request *request = &pending->request;
    struct error *why = &pending->transaction.why;
    /* Nothing changes that could not be kept. */
    if (request->save && saved_check(supervisor_saved(pending->work.admin->supervisor), why))
        return;
    if (request->target == ADMIN_TARGET_GPU)
        change_gpu(pending);
    else if (request->target == ADMIN_TARGET_GROUP || request->target == ADMIN_TARGET_CGROUP ||
             request->totals)
        change_total(pending);
    else
        change_clients(pending);
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
    json_incref(pending->request.values);
    json_incref(pending->request.cgroup);
    admin_peer_name(peer, pending->by);
    admin_peer_work_begin(&pending->work, peer);
    change_begin(pending);
    admin_peer_work_wait(&pending->work, ADMIN_SET_MS);
}
