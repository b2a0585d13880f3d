/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Limits that are shown, or changed for one request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "server/supervisor/admin_answer.h"
#include "server/supervisor/admin_peer.h"
#include "server/supervisor/supervisor.h"

/* Making a partition is slow while the device is busy. */
#define SET_MS 10000

struct setting {
    struct admin_work work; /* first */
    struct admin_request request;
    uint32_t *clients;
    size_t count;
    uint32_t error; /* of the first client that could not be changed */
    char text[400];
};

static void setting_free(struct admin_work *work)
{
    struct setting *setting = (struct setting *)work;
    free(setting->clients);
    free(setting);
}

static void setting_answer(struct admin_work *work, struct admin_peer *peer, bool late)
{
    struct setting *setting = (struct setting *)work;
    if (late && !setting->error) {
        setting->error = PROTO_ERROR_DEVICE_NOT_READY;
        snprintf(setting->text, sizeof setting->text,
                 "a worker has not answered for %d s: it may still carry the change out",
                 SET_MS / 1000);
    }
    if (setting->error)
        admin_peer_refuse(peer, setting->error, setting->text);
    else
        admin_peer_answer(peer, admin_answer_limits(work->admin->supervisor, &setting->request));
}

static void on_set(void *context, uint32_t client, uint32_t error, const char *text)
{
    struct setting *setting = context;
    if (error && !setting->error) {
        setting->error = error;
        snprintf(setting->text, sizeof setting->text, "client %u: %.380s", client, text);
    }
    admin_work_came(&setting->work);
}

static bool collect(void *context, const struct supervisor_client_view *view)
{
    struct setting *setting = context;
    if (admin_request_concerns(&setting->request, view))
        setting->clients[setting->count++] = view->number;
    return true;
}

static struct setting *setting_new(struct admin_peer *peer, const struct admin_request *request)
{
    struct supervisor_totals totals;
    supervisor_totals(peer->admin->supervisor, &totals);
    struct setting *setting = calloc(1, sizeof *setting);
    uint32_t *clients = calloc((size_t)totals.clients + 1, sizeof *clients);
    if (!setting || !clients) {
        free(setting);
        free(clients);
        return NULL;
    }
    *setting = (struct setting){.work = {.answer = setting_answer, .free = setting_free},
                                .request = *request,
                                .clients = clients};
    admin_work_begin(&setting->work, peer);
    supervisor_each_client(peer->admin->supervisor, collect, setting);
    return setting;
}

/* Nobody's limits change unless everybody's may. */
static void check_all(struct setting *setting)
{
    for (size_t i = 0; i < setting->count && !setting->error; i++)
        setting->error =
            supervisor_check(setting->work.admin->supervisor, setting->clients[i],
                             &setting->request.change, setting->text, sizeof setting->text);
    if (setting->count)
        return;
    setting->error = PROTO_ERROR_NOT_FOUND;
    snprintf(setting->text, sizeof setting->text, "%s %u: \"clients\" shows those there are",
             setting->request.by_user ? "no client is attached of uid"
                                      : "there is no attached client",
             setting->request.client);
}

static void set_all(struct setting *setting, const char *by)
{
    struct supervisor *supervisor = setting->work.admin->supervisor;
    for (size_t i = 0; i < setting->count; i++) {
        int result = supervisor_set(supervisor, setting->clients[i], &setting->request.change, by,
                                    on_set, setting);
        setting->work.outstanding += result == 0;
        if (result < 0 && !setting->error) {
            setting->error = PROTO_ERROR_SERVER_RESOURCES;
            snprintf(setting->text, sizeof setting->text, "client %u could not be changed: %s",
                     setting->clients[i], strerror(-result));
        }
    }
}

void admin_change(struct admin_peer *peer, const struct admin_request *request)
{
    char by[48];
    struct setting *setting = setting_new(peer, request);
    if (!setting) {
        admin_peer_refuse(peer, PROTO_ERROR_SERVER_RESOURCES, "the server is short of memory");
        return;
    }
    check_all(setting);
    if (!setting->error && request->kind == ADMIN_SET)
        set_all(setting, admin_peer_name(peer, by, sizeof by));
    admin_work_wait(&setting->work, SET_MS);
}
