/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/gather.h"

#include <stdlib.h>

#include "common/admin_times.h"
#include "common/messages.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/admin/metrics.h"
#include "server/supervisor/view.h"

struct gathering {
    struct admin_work work; /* must stay first */
    enum admin_kind kind;
    uint32_t clients_shown;
    struct admin_usages usages;
    size_t room;
};

static void gathering_free(struct admin_work *work)
{
    struct gathering *gathering = (struct gathering *)work;
    free(gathering->usages.rows);
    free(gathering);
}

/* Answers with what the workers have reported by now. */
static void gathering_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct gathering *gathering = (struct gathering *)work;
    struct supervisor *supervisor = work->admin->supervisor;
    (void)late;
    if (gathering->kind == ADMIN_STATUS)
        admin_peer_answer(peer, admin_answer_status(supervisor, &gathering->usages));
    else if (gathering->kind == ADMIN_CLIENTS)
        admin_peer_answer(peer, admin_answer_clients(supervisor, &gathering->usages));
    else
        admin_peer_answer(peer, admin_metrics_answer(supervisor, gathering->clients_shown));
}

static void on_usage(void *context, uint32_t client, const struct proto_worker_usage *usage)
{
    struct gathering *gathering = context;
    struct admin_usage *row = admin_answer_find_usage(&gathering->usages, client);
    if (row && usage) {
        row->usage = *usage;
        row->known = true;
    }
    admin_peer_work_came(&gathering->work);
}

static bool client_collect(void *context, const struct client_view *view)
{
    struct gathering *gathering = context;
    if (view->attached)
        gathering->usages.rows[gathering->usages.count++].client = view->number;
    return gathering->usages.count < gathering->room;
}

void admin_gather(struct admin_peer *peer, const struct admin_request *request)
{
    struct supervisor *supervisor = peer->admin->supervisor;
    struct server_view server;
    view_server(supervisor, &server);
    struct gathering *gathering = calloc(1, sizeof *gathering);
    struct admin_usage *rows = calloc((size_t)server.clients + 1, sizeof *rows);
    if (!gathering || !rows) {
        free(gathering);
        free(rows);
        admin_peer_refuse(peer, MESSAGE(server_no_memory));
        return;
    }
    *gathering = (struct gathering){.work = {.answer = gathering_answer, .free = gathering_free},
                                    .kind = request->kind,
                                    .clients_shown = request->clients_shown,
                                    .usages = {.rows = rows},
                                    .room = (size_t)server.clients + 1};
    admin_peer_work_begin(&gathering->work, peer);
    /* All rows are made before the first question: an answer needs its row. */
    view_each_client(supervisor, client_collect, gathering);
    for (size_t i = 0; i < gathering->usages.count; i++)
        if (view_usage(supervisor, rows[i].client, on_usage, gathering) == 0)
            gathering->work.outstanding++;
    admin_peer_work_wait(&gathering->work, ADMIN_USAGE_MS);
}
