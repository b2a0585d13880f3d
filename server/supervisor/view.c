/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/messages.h"
#include "common/regular_file.h"
#include "common/units.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/device/device_request.h"
#include "server/supervisor/device/device_singly.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/supervisor_private.h"

/* Calls of the driver that have lasted longer are shown. */
#define CALL_SHOWN_NS UNITS_SECOND

uint32_t view_device_count(const struct supervisor *supervisor)
{
    return supervisor->server.device_count;
}

static bool same_partition(const struct session *a, const struct session *b)
{
    return memcmp(a->worker.sm_groups, b->worker.sm_groups, sizeof a->worker.sm_groups) == 0;
}

/* Whether an attached client is the first one in the list with its partition, which is counted
 * there. */
static bool first_of_partition(const struct supervisor *supervisor, const struct session *session)
{
    const struct session *other;
    LIST_FOR_EACH (other, &supervisor->server.session_list, link)
        if (other->device == session->device && other->state == PROTO_CONNECTION_STATE_ATTACHED &&
            same_partition(other, session))
            break;
    return other == session;
}

static void view_standby(const struct standby *standby, struct standby_view *view)
{
    *view = (struct standby_view){
        .kind = standby->kind,
        .state = standby->state,
        .pid = standby->process ? worker_process_pid(standby->process) : 0,
        .device_bytes = standby->device_bytes,
        .resident = standby_resident(standby),
        .takeovers = standby->takeovers,
        .failures = standby->failures,
    };
    memcpy(view->trouble, standby->trouble, sizeof view->trouble);
}

static void view_newcomer(const struct supervisor *supervisor, const struct device *device,
                          struct device_view *view)
{
    const struct config *config = supervisor->server.config;
    struct admission admission = device->admission;
    if (!device->known)
        return;
    if (config)
        allowance_tighten(&admission.limits, &config->ceilings[device->index]);
    struct grant grant = admission_grant(&admission, &device->info, &allowance_none);
    admission_put_newcomers(&grant, &device->newcomers, device->info.memory);
    view->newcomer = grant.allowance;
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_has(&admission.limits, i, ALLOWANCE_REQUEST))
            view->newcomer_requests |= RESOURCE_BIT(i);
}

void view_device(const struct supervisor *supervisor, uint32_t index, struct device_view *view)
{
    const struct device *device = &supervisor->server.devices[index];
    *view = (struct device_view){
        .index = index,
        .ordinal = device->found.ordinal,
        .state = device->state,
        .info = device->info,
        .worker_pid = device->process ? worker_process_pid(device->process) : 0,
        .drained = device->drained,
        .singly = device->singly,
        .singly_ns = device_singly_ns(device),
        .worker_starts = device->starts,
        .schedule = device->schedule,
        .configured = *config_schedule(supervisor->server.config, index,
                                       &supervisor->server.settings->schedule),
    };
    memcpy(view->trouble, device->trouble, sizeof view->trouble);
    memcpy(view->warnings, device->warnings, sizeof view->warnings);
    view->warning_count = device->warning_count;
    view_standby(&device->standby, &view->standby);
    view_newcomer(supervisor, device, view);
    if (device->watchdog.silent) {
        view->silent_ns = units_tenth_passed(heartbeat_silent_ns(&device->watchdog.heartbeat));
        heartbeat_explain(&device->watchdog.heartbeat, view->worker_pid, view->silence);
    }
    if (device->process)
        view->call_count =
            heartbeat_calls(&device->watchdog.heartbeat, clock_now(), CALL_SHOWN_NS, view->calls);
    for (enum activity_count i = 0; device->process && i < ACTIVITY_COUNTS; i++)
        view->compilations[i] = heartbeat_count(&device->watchdog.heartbeat, i);
    for (unsigned i = 0; i < view->call_count; i++)
        view->calls[i].ns = units_tenth_passed(view->calls[i].ns);
    view->ended = device->ended_at != 0;
    if (view->ended)
        view->ended_ns = clock_now() - device->ended_at;
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link) {
        if (session->device != device)
            continue;
        view->clients++;
        view->memory_charged += session->quotas[RESOURCE_MEMORY].used;
        view->partitions += session->state == PROTO_CONNECTION_STATE_ATTACHED &&
                            first_of_partition(supervisor, session);
    }
}

const char *view_device_uuid(const struct supervisor *supervisor, uint32_t index,
                             char text[LIMITS_UUID_TEXT])
{
    return limits_format_uuid(supervisor->uuids[index], text);
}

static void view_client(const struct session *session, struct client_view *view)
{
    *view = (struct client_view){
        .number = session->number,
        .pid = session->pid,
        .uid = session->uid,
        .state = proto_connection_state_name(session->state),
        .blame = session->blame.isolated  ? "isolated"
                 : session->blame.suspect ? "suspect"
                                          : "none",
        .attached = session->device != NULL,
        .fds = session_fds(session),
        .waiting = session->requests,
        .connected_ns = clock_now() - session->connected_at,
    };
    memcpy(view->name, session->name, sizeof view->name);
    if (!session->device)
        return;
    view->used = &session->used;
    view->device = session->device->index;
    view->asked = session->wish;
    view->granted = session_limits_in_force(session);
    view->own = session->grant.allowance;
    QUOTA_FOR_EACH (i)
        view->charged[i] = session->quotas[i].used;
    view->multiprocessors = session->worker.multiprocessors;
    view->partitioned = session->worker.partitioned;
    if (session->state == PROTO_CONNECTION_STATE_ATTACHED)
        view->singly_ns = device_singly_ns(session->device) - session->singly_before;
}

void view_each_client(const struct supervisor *supervisor,
                      bool (*visit)(void *context, const struct client_view *view), void *context)
{
    struct client_view view;
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link) {
        view_client(session, &view);
        if (!visit(context, &view))
            return;
    }
}

void view_server(const struct supervisor *supervisor, struct server_view *view)
{
    const uint64_t now = clock_now();
    *view = (struct server_view){
        .clients = supervisor->server.sessions,
        .clients_max = supervisor->server.budget.clients,
        .clients_served = supervisor->server.served,
        .clients_refused = supervisor->server.refused,
        .host_limit = supervisor->server.quotas[RESOURCE_HOST_MEMORY].limit,
        .host_charged = supervisor->server.quotas[RESOURCE_HOST_MEMORY].used,
        .fds_limit = supervisor->server.budget.descriptors,
        .images = supervisor->server.cache.images,
        .image_bytes = supervisor->server.cache.bytes,
        .uptime_ns = now - supervisor->started_at,
        .process_uptime_ns = now - supervisor->process_started_at,
    };
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        view->fds += session_fds(session);
}

const struct history *view_history(struct supervisor *supervisor)
{
    struct history *history = &supervisor->server.history;
    const struct session *session;
    history_count_begin(history);
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->device)
            history_count(history, session->device->index, session->uid, &session->used,
                          session->quotas[RESOURCE_MEMORY].used);
    return history;
}

struct usage_question {
    struct supervisor *supervisor;
    void (*done)(void *context, uint32_t client, const struct proto_worker_usage *usage);
    void *context;
    uint32_t client;
};

static void note_usage(const struct usage_question *question,
                       const struct proto_worker_usage *usage)
{
    struct server *server = &question->supervisor->server;
    struct session *session = session_find(server, question->client);
    if (!session || !session->device)
        return;
    history_use_read(&session->used, usage);
    history_windows(&server->history, session->device->index, session->device->starts, usage);
}

static void usage_answered(void *context, const struct worker_answer *answer)
{
    struct usage_question *question = context;
    struct proto_worker_usage usage;
    bool known = answer->outcome == WORKER_ANSWERED;
    if (known) {
        memcpy(&usage, answer->message->body, sizeof usage);
        note_usage(question, &usage);
    }
    question->done(question->context, question->client, known ? &usage : NULL);
    free(question);
}

int view_usage(struct supervisor *supervisor, uint32_t client,
               void (*done)(void *context, uint32_t client, const struct proto_worker_usage *usage),
               void *context)
{
    struct session *session = session_find(&supervisor->server, client);
    if (!session || !(session->state == PROTO_CONNECTION_STATE_ATTACHED ||
                      (session->state == PROTO_CONNECTION_STATE_LEAVING && session->at_worker)))
        return -ENOENT;
    struct usage_question *question = malloc(sizeof *question);
    if (!question)
        return -ENOMEM;
    *question = (struct usage_question){
        .supervisor = supervisor, .done = done, .context = context, .client = client};
    /* Not through the session, which asks nothing after its end: the answer does not need it. */
    struct channel_packet request = {.opcode = PROTO_WORKER_USAGE_QUERY, .client = client};
    int result = device_request(session->device, &request, usage_answered, question);
    if (result < 0)
        free(question);
    return result;
}

static void warn_of_configuration(const struct supervisor *supervisor, struct error *what)
{
    if (supervisor->refused.copied)
        error_set(what, MESSAGE(configuration_copied), supervisor->refused.why.text);
    else
        error_set(what, MESSAGE(configuration_refused), supervisor->refused.why.text);
}

static void warn_of_options(const struct supervisor *supervisor, struct error *what)
{
    error_set(what, MESSAGE(options_refused), supervisor->server.settings->refused.text);
}

static void warn_of_copy(const struct supervisor *supervisor, struct error *what)
{
    const char *state = supervisor->server.settings->state;
    if (supervisor->copies.config_failed)
        error_set(what, MESSAGE(configuration_not_copied), state,
                  regular_file_reason(supervisor->copies.config_failed));
    else
        error_set(what, MESSAGE(configuration_start_not_copied), state,
                  regular_file_reason(supervisor->copies.start_failed));
}

static void warn_of_accounting(const struct supervisor *supervisor, struct error *what)
{
    const struct outbox *outbox = &supervisor->server.accounting.outbox;
    error_set(what, MESSAGE(accounting_waits), outbox->path, regular_file_reason(outbox->error));
}

static void warn_of_saved(const struct supervisor *supervisor, struct error *what)
{
    const struct saved *saved = supervisor->saved;
    if (saved->trouble.number)
        *what = saved->trouble;
    else
        error_set(what, MESSAGE(saved_waits), saved->file, regular_file_reason(saved->failed));
}

static bool warning_is_on(const struct supervisor *supervisor, enum server_warning warning)
{
    switch (warning) {
    case WARNING_CONFIGURATION_REFUSED:
        return supervisor->refused.why.number != 0;
    case WARNING_OPTIONS_REFUSED:
        return supervisor->server.settings->refused.number != 0;
    case WARNING_CONFIGURATION_NOT_COPIED:
        return supervisor->copies.config_failed != 0 || supervisor->copies.start_failed != 0;
    case WARNING_ACCOUNTING_NOT_WRITTEN:
        return supervisor->server.accounting.outbox.failing;
    case WARNING_SAVED_NOT_KEPT:
        return supervisor->saved->trouble.number != 0 || supervisor->saved->failed != 0;
    default:
        return false;
    }
}

bool view_warning(const struct supervisor *supervisor, enum server_warning warning,
                  struct error *what)
{
    static void (*const words[])(const struct supervisor *, struct error *) = {
        [WARNING_CONFIGURATION_REFUSED] = warn_of_configuration,
        [WARNING_OPTIONS_REFUSED] = warn_of_options,
        [WARNING_CONFIGURATION_NOT_COPIED] = warn_of_copy,
        [WARNING_ACCOUNTING_NOT_WRITTEN] = warn_of_accounting,
        [WARNING_SAVED_NOT_KEPT] = warn_of_saved,
    };
    if (!warning_is_on(supervisor, warning))
        return false;
    if (what)
        words[warning](supervisor, what);
    return true;
}

const char *view_warning_name(enum server_warning warning)
{
    static const char *const names[] = {
        [WARNING_CONFIGURATION_REFUSED] = "configuration_refused",
        [WARNING_OPTIONS_REFUSED] = "options_refused",
        [WARNING_CONFIGURATION_NOT_COPIED] = "configuration_not_copied",
        [WARNING_ACCOUNTING_NOT_WRITTEN] = "accounting_not_written",
        [WARNING_SAVED_NOT_KEPT] = "saved_not_kept",
    };
    return names[warning];
}

void view_config(const struct supervisor *supervisor, struct config_view *view)
{
    const struct config *config = supervisor->server.config;
    *view = (struct config_view){0};
    if (config)
        *view = (struct config_view){
            .file = config->file,
            .profiles = config->profile_count,
            .rules = config->rule_count,
            .gpus = config->gpu_count,
            .users = config->user_count,
            .groups = config->group_count,
            .cgroups = config->cgroup_count,
        };
    view->changed_clients = supervisor->reloaded.clients;
    view->changed_settings = supervisor->reloaded.settings;
}

const struct config *view_configuration(const struct supervisor *supervisor)
{
    return supervisor->server.config;
}

const struct total_overrides *view_overrides(const struct supervisor *supervisor)
{
    return &supervisor->server.total_overrides;
}
