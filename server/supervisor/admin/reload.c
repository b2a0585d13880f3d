/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/reload.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/admin_times.h"
#include "common/log.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/view.h"

struct reloading {
    struct admin_work work; /* first */
    uint32_t error;
    char text[800];
    char by[48];
};

static void reloading_free(struct admin_work *work)
{
    free(work);
}

static void reloading_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct reloading *reloading = (struct reloading *)work;
    struct config_view view;
    char text[900];
    if (late) {
        snprintf(text, sizeof text,
                 "a worker has not answered for %d s: the configuration may still be put in force",
                 ADMIN_RELOAD_MS / 1000);
        admin_peer_refuse(peer, PROTO_ERROR_DEVICE_NOT_READY, text);
    } else if (reloading->error) {
        snprintf(text, sizeof text, "the configuration stays as it was: %s", reloading->text);
        admin_peer_refuse(peer, reloading->error, text);
    } else {
        view_config(work->admin->supervisor, &view);
        admin_peer_answer(peer, admin_answer_reload(&view));
    }
}

static void result_take(struct reloading *reloading, uint32_t error, const char *text)
{
    reloading->error = error;
    snprintf(reloading->text, sizeof reloading->text, "%s", text);
    log_notice("admin: reload asked for by %s: %s", reloading->by, error ? text : "done");
}

static void reload_answered(void *context, uint32_t error, const char *text)
{
    struct reloading *reloading = context;
    result_take(reloading, error, text);
    admin_work_came(&reloading->work);
}

void admin_reload(struct admin_peer *peer)
{
    char text[800] = "";
    struct reloading *reloading = calloc(1, sizeof *reloading);
    if (!reloading) {
        admin_peer_refuse(peer, PROTO_ERROR_SERVER_RESOURCES, "the server is short of memory");
        return;
    }
    reloading->work = (struct admin_work){.answer = reloading_answer, .free = reloading_free};
    admin_peer_name(peer, reloading->by, sizeof reloading->by);
    admin_work_begin(&reloading->work, peer);
    int result =
        reload_start(peer->admin->supervisor, text, sizeof text, reload_answered, reloading);
    reloading->work.outstanding = result == 0;
    if (result)
        result_take(reloading, result < 0 ? PROTO_ERROR_INVALID_VALUE : 0, text);
    admin_work_wait(&reloading->work, ADMIN_RELOAD_MS);
}
