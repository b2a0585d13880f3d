/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/kill.h"

#include <stdlib.h>

#include "common/admin_times.h"
#include "common/error.h"
#include "common/messages.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/view.h"

/* The end of a client that has left. */
struct killing {
    struct admin_work work; /* must stay first */
    struct proto_worker_usage usage;
    bool known; /* usage is set */
    uint32_t client;
    bool force;
    char by[ADMIN_NAME];
};

static void killing_free(struct admin_work *work)
{
    free(work);
}

/* A worker that does not answer in time may be the very one that has to be replaced. */
static void killing_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct killing *killing = (struct killing *)work;
    json_t *answer = admin_answer_kill(work->admin->supervisor, killing->client, true);
    struct error why;
    (void)late;
    if (clients_kill_leaving(work->admin->supervisor, killing->client,
                             killing->known ? &killing->usage : NULL, killing->force, killing->by,
                             &why)) {
        json_decref(answer);
        admin_peer_refuse(peer, why.number, "%s", why.text);
    } else {
        admin_peer_answer(peer, answer);
    }
}

static void on_usage(void *context, uint32_t client, const struct proto_worker_usage *usage)
{
    struct killing *killing = context;
    (void)client;
    if (usage) {
        killing->usage = *usage;
        killing->known = true;
    }
    admin_peer_work_came(&killing->work);
}

static void kill_leaving(struct admin_peer *peer, const struct admin_request *request)
{
    struct killing *killing = calloc(1, sizeof *killing);
    if (!killing) {
        admin_peer_refuse(peer, MESSAGE(server_no_memory));
        return;
    }
    *killing = (struct killing){.work = {.answer = killing_answer, .free = killing_free},
                                .client = request->number,
                                .force = request->force};
    admin_peer_name(peer, killing->by);
    admin_peer_work_begin(&killing->work, peer);
    killing->work.outstanding =
        view_usage(peer->admin->supervisor, killing->client, on_usage, killing) == 0;
    admin_peer_work_wait(&killing->work, ADMIN_USAGE_MS);
}

struct user_killing {
    struct supervisor *supervisor;
    const uint32_t *uid; /* NULL: the clients of all users */
    const char *by;
    unsigned count;
};

/* A client that is killed is marked, and leaves the list later. */
static bool kill_of_user(void *context, const struct client_view *view)
{
    struct user_killing *killing = context;
    if (!killing->uid || view->uid == *killing->uid)
        killing->count += clients_kill(killing->supervisor, view->number, killing->by) == 0;
    return true;
}

/* uid: NULL for all users. Where nobody is attached, all have been ended; a user of that number may
 * be a mistake. */
static void kill_users(struct admin_peer *peer, const uint32_t *uid, const char *by)
{
    struct supervisor *supervisor = peer->admin->supervisor;
    struct user_killing killing = {.supervisor = supervisor, .uid = uid, .by = by};
    json_t *answer = admin_answer_kill_users(supervisor, uid);
    view_each_client(supervisor, kill_of_user, &killing);
    if (killing.count || !uid) {
        admin_peer_answer(peer, answer);
        return;
    }
    json_decref(answer);
    admin_peer_refuse(peer, MESSAGE(user_not_attached), *uid);
}

void admin_kill(struct admin_peer *peer, const struct admin_request *request)
{
    char by[ADMIN_NAME];
    admin_peer_name(peer, by);
    if (request->all || request->target == ADMIN_TARGET_USER) {
        kill_users(peer, request->all ? NULL : &request->number, by);
        return;
    }
    json_t *answer = admin_answer_kill(peer->admin->supervisor, request->number, false);
    if (clients_kill(peer->admin->supervisor, request->number, by) == 0) {
        admin_peer_answer(peer, answer);
        return;
    }
    json_decref(answer);
    kill_leaving(peer, request);
}
