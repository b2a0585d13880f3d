/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/reload.h"

#include <stdlib.h>

#include "common/admin_times.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/view.h"

struct reloading {
    struct admin_work work; /* first */
    struct error why;       /* number 0: it is done */
    bool reset;
    char by[ADMIN_NAME];
};

static void reloading_free(struct admin_work *work)
{
    free(work);
}

static void reloading_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct reloading *reloading = (struct reloading *)work;
    struct config_view view;
    if (late) {
        admin_peer_refuse(peer, MESSAGE(reload_late), ADMIN_RELOAD_MS / 1000);
    } else if (reloading->why.number) {
        admin_peer_refuse(peer, reloading->why.number, MESSAGE_TEXT(reload_refused),
                          reloading->why.text);
    } else {
        view_config(work->admin->supervisor, &view);
        admin_peer_answer(peer, admin_answer_reload(&view));
    }
}

static void reload_log(const struct reloading *reloading)
{
    struct config_view view;
    view_config(reloading->work.admin->supervisor, &view);
    if (reloading->why.number)
        log_notice(MESSAGE_TEXT(log_reload_admin), reloading->by, reloading->why.text);
    else if (reloading->reset)
        log_notice(MESSAGE_TEXT(log_reset_admin_done), reloading->by, view.changed_clients,
                   view.changed_settings);
    else
        log_notice(MESSAGE_TEXT(log_reload_admin_done), reloading->by, view.changed_clients,
                   view.changed_settings);
}

static void reload_answered(void *context, uint32_t error, const char *text)
{
    struct reloading *reloading = context;
    error_set(&reloading->why, error, "%s", text);
    reload_log(reloading);
    admin_peer_work_came(&reloading->work);
}

void admin_reload(struct admin_peer *peer, const struct admin_request *request)
{
    struct reloading *reloading = calloc(1, sizeof *reloading);
    if (!reloading) {
        admin_peer_refuse(peer, MESSAGE(server_no_memory));
        return;
    }
    reloading->work = (struct admin_work){.answer = reloading_answer, .free = reloading_free};
    admin_peer_name(peer, reloading->by);
    admin_peer_work_begin(&reloading->work, peer);
    reloading->reset = request->reset;
    uint32_t error = reload_file(peer->admin->supervisor, request->reset, reload_answered,
                                 reloading, &reloading->why);
    reloading->work.outstanding = !error;
    if (error)
        reload_log(reloading);
    admin_peer_work_wait(&reloading->work, ADMIN_RELOAD_MS);
}
