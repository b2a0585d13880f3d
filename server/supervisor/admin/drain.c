/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/admin_times.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/admin/saved.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/saved.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/view.h"

struct draining {
    struct admin_work work; /* must stay first */
    struct admin_request request;
    bool saved;       /* a later server finds the GPUs so */
    struct error why; /* number 0: nothing has failed */
};

static void draining_free(struct admin_work *work)
{
    free(work);
}

static void draining_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct draining *draining = (struct draining *)work;
    if (late && !draining->why.number)
        error_set(&draining->why, MESSAGE(drain_not_saved),
                  supervisor_saved(work->admin->supervisor)->file, strerror(ETIMEDOUT));
    if (draining->why.number)
        admin_peer_refuse(peer, draining->why.number, "%s", draining->why.text);
    else
        admin_peer_answer(
            peer, admin_answer_drain(work->admin->supervisor, &draining->request, draining->saved));
}

static void save_failed(struct draining *draining, int result)
{
    error_set(&draining->why, MESSAGE(drain_not_saved),
              supervisor_saved(draining->work.admin->supervisor)->file, strerror(-result));
}

static void save_ended(void *context, int result)
{
    struct draining *draining = context;
    if (result < 0)
        save_failed(draining, result);
    admin_peer_work_came(&draining->work);
}

/* Returns whether the file has to be written, or -ENOMEM. */
static int drain_one(struct draining *draining, uint32_t gpu, const char *by)
{
    struct supervisor *supervisor = draining->work.admin->supervisor;
    const bool drained = draining->request.kind == ADMIN_DRAIN;
    struct device_view view;
    view_device(supervisor, gpu, &view);
    if (view.drained != drained) {
        clients_drain(supervisor, gpu, drained);
        log_notice(drained ? MESSAGE_TEXT(log_drained) : MESSAGE_TEXT(log_resumed), gpu, by);
    }
    /* Also if nothing has changed: an earlier write may have failed. */
    return draining->saved ? admin_saved_drained(supervisor, gpu, drained, by) : 0;
}

static void drain_all(struct draining *draining, const char *by)
{
    struct supervisor *supervisor = draining->work.admin->supervisor;
    const struct admin_request *request = &draining->request;
    int changed = 0;
    for (uint32_t i = 0; changed >= 0 && i < view_device_count(supervisor); i++) {
        if (request->target == ADMIN_TARGET_GPU && request->number != i)
            continue;
        int result = drain_one(draining, i, by);
        changed = result < 0 ? result : changed | result;
    }
    if (changed > 0 && saved_write(supervisor_saved(supervisor), save_ended, draining) < 0)
        changed = -ENOMEM;
    draining->work.outstanding += changed > 0;
    if (changed < 0)
        save_failed(draining, changed);
}

void admin_drain(struct admin_peer *peer, const struct admin_request *request)
{
    struct supervisor *supervisor = peer->admin->supervisor;
    char by[ADMIN_NAME];
    struct error unused;
    if (request->target == ADMIN_TARGET_GPU && request->number >= view_device_count(supervisor)) {
        admin_peer_refuse(peer, MESSAGE(gpu_unknown), request->number);
        return;
    }
    struct draining *draining = calloc(1, sizeof *draining);
    if (!draining) {
        admin_peer_refuse(peer, MESSAGE(server_no_memory));
        return;
    }
    *draining = (struct draining){.work = {.answer = draining_answer, .free = draining_free},
                                  .request = *request,
                                  .saved = !saved_check(supervisor_saved(supervisor), &unused)};
    admin_peer_name(peer, by);
    admin_peer_work_begin(&draining->work, peer);
    drain_all(draining, by);
    admin_peer_work_wait(&draining->work, ADMIN_SET_MS);
}
