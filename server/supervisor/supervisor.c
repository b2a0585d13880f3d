/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/messages.h"
#include "common/units.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/config/copies.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/session/life/bill.h"
#include "server/supervisor/session/life/blame.h"
#include "server/supervisor/session/life/restore.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/life/end.h"
#include "server/supervisor/session/life/lost_kernels.h"
#include "server/supervisor/session/owned/forward.h"
#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/owned/memory.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/supervisor_private.h"
#include "server/supervisor/device/tracing.h"
#include "server/supervisor/survive.h"

/* Module images of all clients together may take this part of the machine's memory. */
#define IMAGES_PART 8

/* ---- the loop's turn ---- */

/* Ends the stopping if nothing that supervisor_stop waits for is left. */
static void stop_advance(struct supervisor *supervisor)
{
    if (!supervisor->stopping || supervisor->stopped || supervisor->server.sessions ||
        supervisor->reload_file || !pinned_pool_is_empty(&supervisor->server.pinned) ||
        !accounting_end(&supervisor->server))
        return;
    for (uint32_t i = 0; i < supervisor->server.device_count; i++)
        if (supervisor->server.devices[i].state != DEVICE_STOPPED)
            return;
    supervisor->stopped = true;
    uv_close((uv_handle_t *)&supervisor->before_wait, NULL);
    uv_close((uv_handle_t *)&supervisor->after_wait, NULL);
    if (supervisor->server.keeper) {
        uv_close((uv_handle_t *)&supervisor->show, NULL);
        copies_close(&supervisor->copies);
        survive_stop(supervisor);
    }
    session_own_requests_close(&supervisor->server);
    supervisor->events.stopped(supervisor->events.context);
}

/* A session stays at the head of the queue, marked as due, while it is looked at. So sessions that
 * it schedules come after it. */
static void end_sessions(struct supervisor *supervisor)
{
    struct queue *due = &supervisor->server.due;
    struct session *session;
    while ((session = QUEUE_FIRST(due, struct session, due_link))) {
        bool gone = session_end(session);
        queue_take(due);
        session->due = false;
        if (gone)
            clients_remove(supervisor, session);
    }
}

static void unpark_clients(struct supervisor *supervisor, const struct device *device)
{
    struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->parked.present && session->parked.body.device == device->index)
            session_unpark(session);
}

/* Clients that wait for others to attach may go on, or those that wait for others' memory. */
static void unpark_waiting(struct supervisor *supervisor)
{
    struct server *server = &supervisor->server;
    if (!server->own_requests.look && !server->attaching_again)
        return;
    server->own_requests.look = server->attaching_again = false;
    for (uint32_t i = 0; i < server->device_count; i++)
        if (device_serves(&server->devices[i]))
            unpark_clients(supervisor, &server->devices[i]);
}

/* No callback is on the stack now, so the work that callbacks have left can be done. While the
 * service manager has no room for what is to be kept, it is left for another turn. */
static void take_turn(struct supervisor *supervisor)
{
    do {
        /* No client is told that it ends before the reason is kept. */
        if (!queue_is_empty(&supervisor->server.due) && !survive_commit(supervisor))
            return;
        end_sessions(supervisor);
        unpark_waiting(supervisor);
        reload_advance(supervisor);
    } while (pinned_pool_retry(&supervisor->server) || !queue_is_empty(&supervisor->server.due));
    if (!survive_commit(supervisor))
        return;
    outbox_go(&supervisor->server.accounting.outbox);
    log_catch_up();
    if (supervisor->events.kept)
        supervisor->events.kept(supervisor->events.context);
    /* The service manager that hears it may end this server at once, and the next one has to find
     * what serves. */
    if (supervisor->tells_ready) {
        supervisor->tells_ready = false;
        supervisor->events.ready(supervisor->events.context);
    }
    stop_advance(supervisor);
}

static void before_wait(uv_prepare_t *prepare)
{
    take_turn(prepare->data);
}

static void after_wait(uv_check_t *check)
{
    take_turn(check->data);
}

/* The loop takes a turn twice: right after messages have been served, and before it sleeps, for
 * work that timers and other callbacks left. So nothing that is due waits for the next message. */
static void turn_open(struct supervisor *supervisor)
{
    uv_prepare_init(supervisor->server.loop, &supervisor->before_wait);
    uv_check_init(supervisor->server.loop, &supervisor->after_wait);
    supervisor->before_wait.data = supervisor->after_wait.data = supervisor;
    uv_prepare_start(&supervisor->before_wait, before_wait);
    uv_check_start(&supervisor->after_wait, after_wait);
}

/* ---- life ---- */

int supervisor_create(struct supervisor **out, uv_loop_t *loop, const struct settings *settings,
                      const struct supervisor_events *events)
{
    *out = NULL;
    struct supervisor *supervisor = calloc(1, sizeof *supervisor);
    struct saved *saved = calloc(1, sizeof *saved);
    if (!supervisor || !saved) {
        free(supervisor);
        free(saved);
        return -ENOMEM;
    }
    supervisor->saved = saved;
    list_init(&supervisor->server.session_list);
    pinned_pool_open(&supervisor->server.pinned, session_host_retry);
    supervisor->server.make_room = session_memory_make_room;
    supervisor->server.loop = loop;
    job_pool_open(&supervisor->server.jobs, loop);
    supervisor->server.settings = settings;
    supervisor->events = *events;
    supervisor->started_at = supervisor->process_started_at = clock_now();
    int result = address_plan_open(&supervisor->server.plan, settings->device_base,
                                   settings->host_base, settings->arena_bytes);
    if (result == 0)
        result = image_cache_open(&supervisor->server.cache);
    if (result == 0)
        result = closer_open(&supervisor->server.closer, FD_BUDGET_MOST, FD_BUDGET_CLOSING);
    if (result < 0) {
        free(saved);
        free(supervisor);
        return result;
    }
    QUOTA_FOR_EACH (i)
        if (!allowance_resource(i)->of_device)
            quota_open(&supervisor->server.quotas[i], allowance_resource(i)->whole_quota, 0, NULL);
    supervisor->server.quotas[RESOURCE_HOST_MEMORY].limit = settings->host_total;
    quota_open(&supervisor->server.images, "module image memory of the server",
               machine_memory() / IMAGES_PART, NULL);
    session_own_requests_open(&supervisor->server);
    accounting_open(&supervisor->server, session_bill_cut);
    turn_open(supervisor);
    *out = supervisor;
    return 0;
}

static void show_workers(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    for (uint32_t i = 0; i < supervisor->server.device_count; i++)
        device_show(&supervisor->server.devices[i]);
}

void supervisor_keep_start(struct supervisor *supervisor, char *const *argv)
{
    copies_keep_start(&supervisor->copies, argv);
}

void supervisor_keep(struct supervisor *supervisor, struct keeper *keeper)
{
    uint64_t often = (uint64_t)supervisor->server.settings->orphan_seconds * 1000 / 6;
    supervisor->server.keeper = keeper;
    outbox_keep(&supervisor->server.accounting.outbox, keeper);
    uv_timer_init(supervisor->server.loop, &supervisor->show);
    supervisor->show.data = supervisor;
    copies_open(&supervisor->copies, supervisor->server.loop, supervisor->server.settings->state,
                &supervisor->server.config);
    uv_timer_start(&supervisor->show, show_workers, often, often);
}

void supervisor_free(struct supervisor *supervisor)
{
    if (!supervisor)
        return;
    assert(supervisor->server.sessions == 0);
    closer_close(&supervisor->server.closer);
    config_free(supervisor->server.config);
    total_override_free(&supervisor->server.total_overrides);
    saved_close(supervisor->saved);
    free(supervisor->saved);
    image_cache_close(&supervisor->server.cache);
    offenders_close(&supervisor->server.offenders);
    history_close(&supervisor->server.history);
    QUOTA_FOR_EACH (i) {
        quota_close(&supervisor->server.quotas[i]);
        for (uint32_t at = 0; at < supervisor->server.device_count; at++)
            quota_close(&supervisor->server.devices[at].quotas[i]);
    }
    quota_close(&supervisor->server.fds);
    quota_close(&supervisor->server.images);
    address_plan_close(&supervisor->server.plan);
    free(supervisor);
}

/* ---- devices ---- */

static void say_status(struct supervisor *supervisor)
{
    uint32_t ready = 0;
    const char *trouble = "";
    struct error status;
    for (uint32_t i = 0; i < supervisor->server.device_count; i++) {
        if (supervisor->server.devices[i].state == DEVICE_READY)
            ready++;
        else if (supervisor->server.devices[i].trouble[0])
            trouble = supervisor->server.devices[i].trouble;
    }
    if (*trouble)
        error_set(&status, MESSAGE(status_devices_trouble), ready, supervisor->server.device_count,
                  trouble);
    else
        error_set(&status, MESSAGE(status_devices), ready, supervisor->server.device_count);
    if (supervisor->events.status)
        supervisor->events.status(supervisor->events.context, status.text);
}

static void device_ready(void *context, struct device *device)
{
    struct supervisor *supervisor = context;
    say_status(supervisor);
    /* Not called for a worker that is taken over: the last server has counted its start. */
    history_recover(&supervisor->server.history, device->index, device->ended_at, device->ready_at);
    tracing_go_on(device->tracing);
    session_restore_all(&supervisor->server, device);
    unpark_clients(supervisor, device);
    if (supervisor->ready || supervisor->stopping)
        return;
    supervisor->ready = supervisor->tells_ready = true;
}

static void device_paced(void *context, struct device *device)
{
    struct supervisor *supervisor = context;
    session_restore_more(&supervisor->server, device);
    unpark_clients(supervisor, device);
}

static void session_lose(struct supervisor *supervisor, struct session *session, uint32_t error,
                         const char *text)
{
    if (supervisor->stopping)
        session_fail(session, error, "%s", text);
    else if (session->state == PROTO_CONNECTION_STATE_ATTACHED)
        session_restore_hold(session);
    /* A client that was not attached yet lost nothing: it may try again. */
    else if (session->state == PROTO_CONNECTION_STATE_ATTACHING)
        session_fail(session, MESSAGE(attach_worker_lost), text);
}

static void device_lost(void *context, struct device *device, uint32_t error, const char *text)
{
    struct supervisor *supervisor = context;
    tracing_lost(device->tracing);
    pinned_pool_lose(&supervisor->server, device);
    session_blame_departed(&supervisor->server, device);
    struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->device == device)
            session_lose(supervisor, session, error, text);
    if (!supervisor->stopping)
        say_status(supervisor);
}

/* The device's client with that number. NULL: it has left, or is of another device. */
static struct session *client_of(const struct supervisor *supervisor, const struct device *device,
                                 uint32_t client)
{
    struct session *session = session_find(&supervisor->server, client);
    return session && session->device == device ? session : NULL;
}

static bool device_holds(void *context, uint32_t client)
{
    const struct supervisor *supervisor = context;
    struct session *session = session_find(&supervisor->server, client);
    bool holds = session && session->held && session->state != PROTO_CONNECTION_STATE_LEAVING;
    if (holds)
        session->blame.asked = true;
    return holds;
}

static void device_gone(void *context, struct device *device)
{
    struct supervisor *supervisor = context;
    uint32_t go_on = 0, ended = 0;
    struct session *session;
    if (supervisor->stopping)
        tracing_lost(device->tracing); /* it may have waited for a worker that never comes */
    else
        session_blame_find(&supervisor->server, device);
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->device == device && session->held) {
            if (session_restore_judge(session, device->trouble))
                go_on++;
            else
                ended++;
        }
    if (go_on || ended)
        log_notice(MESSAGE_TEXT(log_clients_held), device->index, go_on, ended);
    if (ailment_wait(&device->ailment, clock_now()) > AILMENT_CLIENTS_WAIT)
        unpark_clients(supervisor, device);
}

static bool device_absolves(void *context, struct device *device)
{
    struct supervisor *supervisor = context;
    return session_blame_absolve(&supervisor->server, device);
}

static void client_proven(void *context, struct device *device, uint32_t client)
{
    struct supervisor *supervisor = context;
    struct session *session = client_of(supervisor, device, client);
    if (session)
        session_blame_prove(&supervisor->server, session);
}

/* The first reason that there is: that of a device that is being started again is gone. */
static const char *first_trouble(const struct supervisor *supervisor, const struct device *last)
{
    for (uint32_t i = 0; i < supervisor->server.device_count; i++)
        if (supervisor->server.devices[i].trouble[0])
            return supervisor->server.devices[i].trouble;
    return last->trouble;
}

static void device_failed(void *context, struct device *device)
{
    struct supervisor *supervisor = context;
    log_about_device(device->index);
    log_error(MESSAGE_TEXT(log_device_trouble), device->index, device->trouble);
    unpark_clients(supervisor, device);
    say_status(supervisor);
    for (uint32_t i = 0; i < supervisor->server.device_count; i++)
        if (!supervisor->server.devices[i].failed_once)
            return;
    if (!supervisor->ready && !supervisor->stopping)
        supervisor->events.unusable(supervisor->events.context, first_trouble(supervisor, device));
}

/* A kernel that took too long still runs, so the worker's journal has it. */
static void fail_violator(struct session *session, uint32_t error, const char *text)
{
    char kernels[LOST_KERNELS_TEXT];
    if (error == PROTO_ERROR_LAUNCH_TIMEOUT)
        session_fail(session, error, MESSAGE_TEXT(session_overran), text,
                     session_lost_kernels(session, kernels));
    else
        session_fail(session, error, "%s", text);
}

static void client_violated(void *context, struct device *device, uint32_t client, uint32_t error,
                            const char *text)
{
    struct session *session = client_of(context, device, client);
    if (!session)
        return;
    struct history *history = &session->server->history;
    if (error == PROTO_ERROR_LAUNCH_TIMEOUT)
        history_overrun(history, device->index, session->uid, error);
    else
        history_fault(history, device->index, session->uid, error);
    fail_violator(session, error, text);
}

static void client_released(void *context, struct device *device, uint32_t client)
{
    struct session *session = client_of(context, device, client);
    if (session)
        session_released(session);
}

static void device_object_ended(void *context, struct device *device,
                                const struct channel_message *message)
{
    struct session *session = client_of(context, device, message->header.client);
    if (session)
        session_forward_ended(session, message);
}

static void device_stopped(void *context, struct device *device)
{
    (void)device;
    stop_advance(context);
}

static uint32_t set_limits(struct supervisor *supervisor, const struct discovery *discovery,
                           struct error *why)
{
    const struct settings *settings = supervisor->server.settings;
    struct allowance host = allowance_none;
    struct limits_devices devices = {.uuids =
                                         (const uint8_t(*)[LIMITS_UUID_BYTES])supervisor->uuids,
                                     .count = discovery->count,
                                     .visible = discovery->count};
    uint64_t bytes[DEVICES_MAX];
    for (uint32_t i = 0; i < discovery->count; i++) {
        memcpy(supervisor->uuids[i], discovery->devices[i].uuid, LIMITS_UUID_BYTES);
        devices.indices[i] = i;
    }
    uint32_t error = limits_memory_resolve(&settings->limits, &devices, bytes, why);
    if (error)
        return error;
    host.host_memory.limit = settings->host_client;
    for (uint32_t i = 0; i < discovery->count; i++) {
        struct admission *admission = &supervisor->server.devices[i].admission;
        *admission = (struct admission){.limits = limits_listed(&settings->limits, bytes[i]),
                                        .max_window = settings->max_window,
                                        .host_total = settings->host_total};
        allowance_tighten(&admission->limits, &host);
    }
    return 0;
}

/* Pinned memory can't be swapped out, and the machine's own programs need the rest. */
static void note_pinned(const struct settings *settings)
{
    char total[UNITS_TEXT], memory[UNITS_TEXT];
    if (settings->machine_memory && settings->host_total > settings->machine_memory / 4)
        log_warning(MESSAGE_TEXT(log_much_pinned), units_format_bytes(settings->host_total, total),
                    units_format_bytes(settings->machine_memory, memory));
}

/* Each of these descriptors may be stored, and one beyond the store's limit has the server keep
 * nothing: no user's clients may bring that about. An administrator may, with --max-clients. */
static int budget_open(struct supervisor *supervisor, uint32_t devices)
{
    struct fd_budget *budget = &supervisor->server.budget;
    const struct settings *settings = supervisor->server.settings;
    int result = -EMFILE;
    if (settings->keeps)
        result = fd_budget_open(budget, devices, settings->max_clients, KEEPER_FDS_MAX);
    if (result == -EMFILE)
        result = fd_budget_open(budget, devices, settings->max_clients, UINT32_MAX);
    return result;
}

uint32_t supervisor_add_devices(struct supervisor *supervisor, const struct discovery *discovery,
                                bool taking_over, struct error *why)
{
    const struct settings *settings = supervisor->server.settings;
    const struct device_events events = {.ready = device_ready,
                                         .lost = device_lost,
                                         .paced = device_paced,
                                         .holds = device_holds,
                                         .gone = device_gone,
                                         .absolves = device_absolves,
                                         .client_proven = client_proven,
                                         .failed = device_failed,
                                         .stopped = device_stopped,
                                         .client_violated = client_violated,
                                         .client_released = client_released,
                                         .object_ended = device_object_ended,
                                         .context = supervisor};
    int result = budget_open(supervisor, discovery->count);
    if (result == -EMFILE && !supervisor->server.budget.clients)
        return error_set(why, MESSAGE(descriptors_too_few), supervisor->server.budget.descriptors);
    if (result == -EMFILE)
        return error_set(why, MESSAGE(descriptors_for_clients), settings->max_clients,
                         supervisor->server.budget.descriptors, supervisor->server.budget.clients);
    if (result < 0)
        return error_set(why, MESSAGE(descriptors_unknown), strerror(-result));
    supervisor->server.user_clients_max =
        settings->max_user_clients
            ? settings->max_user_clients
            : supervisor->server.budget.clients - supervisor->server.budget.clients / 4;
    log_notice(MESSAGE_TEXT(log_descriptors), supervisor->server.budget.clients,
               supervisor->server.user_clients_max, supervisor->server.budget.descriptors,
               supervisor->server.budget.shared,
               (unsigned)user_share_part(supervisor->server.budget.shared),
               supervisor->server.budget.client_max);
    note_pinned(settings);
    quota_open(&supervisor->server.fds, "file descriptors of the server",
               supervisor->server.budget.shared, NULL);
    for (uint32_t i = 0; i < discovery->count; i++)
        device_open(&supervisor->server.devices[i],
                    &(struct device_options){.loop = supervisor->server.loop,
                                             .jobs = &supervisor->server.jobs,
                                             .settings = settings,
                                             .index = i,
                                             .found = &discovery->devices[i],
                                             .events = &events});
    supervisor->server.device_count = discovery->count;
    supervisor->discovery = *discovery;
    for (uint32_t i = 0; supervisor->server.keeper && i < discovery->count; i++)
        supervisor->server.devices[i].hold = &supervisor->server.hold;
    uint32_t error = set_limits(supervisor, discovery, why);
    if (error)
        return error;
    return reload_start(supervisor, taking_over, why);
}

uint32_t supervisor_start(struct supervisor *supervisor, const struct discovery *discovery,
                          struct error *why)
{
    uint32_t error = supervisor_add_devices(supervisor, discovery, false, why);
    for (uint32_t i = 0; !error && i < supervisor->server.device_count; i++) {
        struct device *device = &supervisor->server.devices[i];
        int result = device_start(device);
        if (result < 0)
            error = error_set(why, error_from_errno(result), MESSAGE_TEXT(log_device_trouble),
                              device->index, device->trouble);
    }
    return error;
}

uint32_t supervisor_take_over(struct supervisor *supervisor, const struct discovery *discovery,
                              const struct state_log_reader *reader, struct error *why)
{
    uint32_t error = supervisor_add_devices(supervisor, discovery, true, why);
    return error ? error : survive_take_over(supervisor, reader, why);
}

/* ---- stopping ---- */

void supervisor_stop(struct supervisor *supervisor)
{
    if (supervisor->stopping)
        return;
    supervisor->stopping = true;
    struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        session_fail(session, MESSAGE(server_ended));
    /* Clients' answers from the workers need not be waited for: what they had dies with the
     * workers. */
    for (uint32_t i = 0; i < supervisor->server.device_count; i++)
        device_stop(&supervisor->server.devices[i]);
    stop_advance(supervisor);
}

/* ---- what it stands on ---- */

uv_loop_t *supervisor_loop(const struct supervisor *supervisor)
{
    return supervisor->server.loop;
}

const struct settings *supervisor_settings(const struct supervisor *supervisor)
{
    return supervisor->server.settings;
}

struct saved *supervisor_saved(const struct supervisor *supervisor)
{
    return supervisor->saved;
}
