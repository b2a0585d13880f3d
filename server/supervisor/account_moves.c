/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account_moves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/device/device_account.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/supervisor_private.h"

static struct account_move *add_move(struct account_moves *moves)
{
    if (moves->count == moves->room) {
        size_t room = max(moves->room * 2, (size_t)16);
        struct account_move *of = realloc(moves->of, room * sizeof *of);
        if (!of)
            return NULL;
        moves->of = of;
        moves->room = room;
    }
    struct account_move *move = &moves->of[moves->count++];
    memset(move, 0, sizeof *move);
    return move;
}

/* The share that a device's worker knows of an account. */
static struct proto_worker_account share_now(const struct supervisor *supervisor, uint32_t device,
                                             const struct proto_worker_account *account)
{
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link) {
        const struct proto_worker_account *found =
            session->device && session->device->index == device
                ? client_accounts_find(&session->counts_in, account->account)
                : NULL;
        if (found)
            return *found;
    }
    return client_accounts_unbound(account);
}

static bool is_planned(const struct account_moves *moves, uint32_t device, uint64_t number)
{
    for (size_t i = 0; i < moves->count; i++)
        if (!moves->of[i].client && moves->of[i].device == device &&
            moves->of[i].share.account == number)
            return true;
    return false;
}

static int plan_share(struct account_moves *moves, uint32_t device,
                      const struct proto_worker_account *share)
{
    const struct proto_worker_account before = share_now(moves->supervisor, device, share);
    if (memcmp(&before, share, sizeof before) == 0 || is_planned(moves, device, share->account))
        return 0;
    struct account_move *move = add_move(moves);
    if (!move)
        return -ENOMEM;
    move->device = device;
    move->share = *share;
    move->share_before = before;
    return 0;
}

/* Whether accounts that stay the same bound the client's multiprocessors in another way. */
static bool bounds_differ(const struct client_accounts *a, const struct client_accounts *b)
{
    bool differ = false;
    for (uint32_t i = 0; i < a->count; i++)
        differ |= a->of[i].threads_limit != b->of[i].threads_limit;
    return differ;
}

static int plan_client(struct account_moves *moves, const struct session *session,
                       const struct client_accounts *to)
{
    int result = 0;
    for (uint32_t i = 0; i < to->count && result == 0; i++)
        result = plan_share(moves, session->device->index, &to->of[i]);
    const bool same = client_accounts_same(to, &session->counts_in);
    if (result < 0 || (same && !bounds_differ(to, &session->counts_in)))
        return result;
    struct account_move *move = add_move(moves);
    if (!move)
        return -ENOMEM;
    move->client = session->number;
    move->told = same;
    move->device = session->device->index;
    move->accounts = *to;
    move->accounts_before = session->counts_in;
    return 0;
}

int account_moves_plan(struct account_moves *moves, struct supervisor *supervisor,
                       const struct config *config, const struct total_overrides *overrides)
{
    const struct session *session;
    int result = 0;
    *moves = (struct account_moves){.supervisor = supervisor};
    LIST_FOR_EACH (session, &supervisor->server.session_list, link) {
        struct client_accounts to;
        if (result < 0 || session->state != PROTO_CONNECTION_STATE_ATTACHED)
            continue;
        session_attach_accounts(session, config, overrides, &to);
        result = plan_client(moves, session, &to);
    }
    return result;
}

void account_moves_free(struct account_moves *moves)
{
    free(moves->of);
    *moves = (struct account_moves){0};
}

bool account_moves_gives(const struct account_move *move)
{
    return !move->client && move->share.time_request <= move->share_before.time_request &&
           move->share.threads_request <= move->share_before.threads_request;
}

/* A client that disconnected meanwhile has nothing to change. */
int account_moves_make(const struct account_moves *moves, uint32_t index, bool back,
                       change_done *done, void *context)
{
    const struct account_move *move = &moves->of[index];
    struct supervisor *supervisor = moves->supervisor;
    if (!move->client)
        return device_account_set(&supervisor->server.devices[move->device],
                                  back ? &move->share_before : &move->share, index, done, context);
    struct session *session = clients_find_attached(supervisor, move->client);
    return session ? session_limits_move(session, back ? &move->accounts_before : &move->accounts,
                                         index, done, context)
                   : 1;
}

void account_moves_commit(struct supervisor *supervisor)
{
    const struct server *server = &supervisor->server;
    struct session *session;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->state == PROTO_CONNECTION_STATE_ATTACHED)
            session_attach_accounts(session, server->config, &server->total_overrides,
                                    &session->counts_in);
}
