/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits/limits.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/attach.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/supervisor_private.h"

static const char by[] = "the configuration";

/* The steps forwards, and the steps back after a refusal. */
enum step { STEP_WAIT, STEP_LOWER, STEP_SCHEDULE, STEP_SHARE, STEP_MEMORY, STEP_OVER };

/* One client's grants under the old and the new file. */
struct change {
    uint32_t client;
    struct grant old, new;        /* as the two files say */
    struct grant was;             /* before the reload; an administrator may have set part of it */
    struct session_totals totals; /* under the file that is not in force */
    struct allowance guaranteed;  /* before the reload, in bytes */
};

struct reload {
    struct supervisor *supervisor;
    struct config
        *config; /* the one that is not in force: the new one, after success the old one */
    struct change *changes;
    size_t count;
    struct schedule old[SETTINGS_DEVICES_MAX]; /* each device's, before the reload */
    enum step step;
    bool back;        /* all returns to where it was */
    bool asked;       /* somebody may have to be asked to go back */
    uint32_t due;     /* answers */
    struct error why; /* number 0: nothing was refused */
    reload_done *done;
    void *context;
};

/* Notes the first refusal. */
static void reload_fail(struct reload *reload, const struct error *why)
{
    if (!reload->why.number)
        reload->why = *why;
    else if (reload->back)
        /* The earlier values are refused now: there is nothing better to go back to. */
        log_error(MESSAGE_TEXT(log_reload_not_undone), why->text);
}

static void reload_fail_errno(struct reload *reload, int result)
{
    struct error why;
    error_set(&why, MESSAGE(request_failed), strerror(-result));
    reload_fail(reload, &why);
}

static struct session *client_find(const struct reload *reload, uint32_t client)
{
    return clients_find_attached(reload->supervisor, client);
}

/* ---- what the worker is asked ---- */

static void client_answered(void *context, uint32_t client, uint32_t error, const char *text)
{
    struct reload *reload = context;
    struct error why;
    reload->due--;
    /* Ignore the answer for a client that disconnected meanwhile. */
    if (error && client_find(reload, client)) {
        error_set(&why, error, MESSAGE_TEXT(reload_client), client, text);
        reload_fail(reload, &why);
    }
}

static void device_answered(void *context, uint32_t device, uint32_t error, const char *text)
{
    struct reload *reload = context;
    struct error why;
    reload->due--;
    if (error) {
        error_set(&why, error, MESSAGE_TEXT(reload_gpu), device, text);
        reload_fail(reload, &why);
    }
}

static void ask_client(struct reload *reload, struct session *session,
                       const struct allowance *wanted)
{
    if (session_limits_change_empty(wanted))
        return;
    int result = session_limits_set(session, wanted, by, client_answered, reload);
    reload->asked = true;
    reload->due += result == 0;
    if (result < 0)
        reload_fail_errno(reload, result);
}

static uint64_t value_if_changed(uint64_t old, uint64_t new, uint64_t now)
{
    return new == old ? now : new;
}

/* The share of the device that the reload gives a client. A value that an administrator has set
 * stays if both files say the same about it, but a request is cut to its limit. */
static struct allowance wanted_limits(const struct reload *reload, const struct change *change,
                                      const struct session *session)
{
    if (reload->back)
        return change->was.allowance;
    const struct allowance *old = &change->old.allowance, *new = &change->new.allowance;
    struct allowance to = session->grant.allowance;
    for (enum resource i = 0; i < RESOURCES; i++) {
        struct allowance_range *range = &to.of[i];
        if (!allowance_resource(i)->by_worker)
            continue;
        range->limit = value_if_changed(old->of[i].limit, new->of[i].limit, range->limit);
        range->request = value_if_changed(old->of[i].request, new->of[i].request, range->request);
        range->request = min(range->request, range->limit);
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (new->scalar[i] != old->scalar[i]) {
            to.scalar[i] = new->scalar[i];
            to.scalar_from[i] = new->scalar_from[i];
        }
    return to;
}

/* Lowers the requests that fall, to make room for those that rise. */
static void requests_lower(struct reload *reload, const struct change *change,
                           struct session *session)
{
    struct allowance wanted = allowance_none;
    const struct allowance to = wanted_limits(reload, change, session);
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_resource(i)->by_worker &&
            to.of[i].request < session->grant.allowance.of[i].request)
            wanted.of[i].request = to.of[i].request;
    ask_client(reload, session, &wanted);
}

static void shares_change(struct reload *reload, const struct change *change,
                          struct session *session)
{
    struct allowance wanted = allowance_none;
    const struct allowance to = wanted_limits(reload, change, session);
    const struct allowance *now = &session->grant.allowance;
    for (enum resource i = 0; i < RESOURCES; i++) {
        if (!allowance_resource(i)->by_worker)
            continue;
        if (to.of[i].limit != now->of[i].limit)
            wanted.of[i].limit = to.of[i].limit;
        if (to.of[i].request != now->of[i].request)
            wanted.of[i].request = to.of[i].request;
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (to.scalar[i] != now->scalar[i]) {
            wanted.scalar[i] = to.scalar[i];
            wanted.scalar_from[i] = to.scalar_from[i];
        }
    ask_client(reload, session, &wanted);
}

static struct schedule schedule_under(const struct reload *reload, const struct config *config,
                                      uint32_t device)
{
    return config ? config->schedules[device] : reload->supervisor->server.settings->schedule;
}

static void device_reschedule(struct reload *reload, uint32_t index)
{
    struct supervisor *supervisor = reload->supervisor;
    struct device *device = &supervisor->server.devices[index];
    struct schedule old = schedule_under(reload, supervisor->server.config, index);
    struct schedule new = schedule_under(reload, reload->config, index);
    unsigned parts = schedule_differs(&old, &new);
    if (!parts)
        return;
    int result = device_schedule_set(device, reload->back ? &reload->old[index] : &new, parts, by,
                                     device_answered, reload);
    reload->asked = true;
    reload->due += result == 0;
    if (result < 0)
        reload_fail_errno(reload, result);
}

/* ---- memory: at once ---- */

/* A limit changes only if the two files differ about it. */
static uint64_t wanted_limit(const struct change *change, const struct session *session,
                             enum resource resource)
{
    uint64_t old = change->old.allowance.of[resource].limit;
    uint64_t new = change->new.allowance.of[resource].limit;
    return new == old ? session->accounts[resource].limit : min(new, session->window.bytes);
}

/* A request changes likewise, and stays below its limit. falling: none rises. */
static struct allowance wanted_guarantees(const struct change *change,
                                          const struct session *session, bool falling)
{
    struct allowance wanted = change->guaranteed;
    ACCOUNT_FOR_EACH (i) {
        const uint64_t old = change->old.allowance.of[i].request;
        const uint64_t new = change->new.allowance.of[i].request;
        const uint64_t now = wanted.of[i].request;
        uint64_t to = min(value_if_changed(old, new, now), wanted_limit(change, session, i));
        wanted.of[i].request = falling ? min(to, now) : to;
        if (new != old)
            wanted.of_from[i].request =
                allowance_source(&change->new.allowance, i, ALLOWANCE_REQUEST);
    }
    return wanted;
}

static void swap_totals(struct reload *reload)
{
    for (size_t i = 0; i < reload->count; i++) {
        struct session *session = client_find(reload, reload->changes[i].client);
        if (session)
            session_quota_swap_totals(session, &reload->changes[i].totals);
    }
}

/* Changes the guarantees; falling: only lowers those that fall, to make room for the others. False:
 * there is no room (reload->why says so), and some have changed. */
static bool guarantees_change(struct reload *reload, bool falling)
{
    for (size_t i = 0; i < reload->count; i++) {
        const struct change *change = &reload->changes[i];
        struct session *session = client_find(reload, change->client);
        if (!session)
            continue;
        const struct allowance wanted = wanted_guarantees(change, session, falling);
        struct error why;
        if (session_quota_guarantee(session, &wanted, &why)) {
            error_prefix(&why, "client %u: ", change->client);
            reload_fail(reload, &why);
            return false;
        }
    }
    return true;
}

/* Restoring can't fail, since no client could allocate in between. */
static void guarantee_as_before(struct reload *reload)
{
    for (int rising = 0; rising < 2; rising++)
        for (size_t i = 0; i < reload->count; i++) {
            const struct change *change = &reload->changes[i];
            struct session *session = client_find(reload, change->client);
            if (!session)
                continue;
            struct allowance to = session_quota_guarantees(session);
            ACCOUNT_FOR_EACH (resource)
                to.of[resource].request =
                    rising ? change->guaranteed.of[resource].request
                           : min(change->guaranteed.of[resource].request, to.of[resource].request);
            session_quota_restore(session, &to);
        }
}

static void remember_guarantees(struct reload *reload)
{
    for (size_t i = 0; i < reload->count; i++) {
        const struct session *session = client_find(reload, reload->changes[i].client);
        if (session)
            reload->changes[i].guaranteed = session_quota_guarantees(session);
    }
}

/* Changes all memory; or changes nothing, and reload->why says why. trial: only finds out whether
 * it would fit. */
static bool change_memory(struct reload *reload, bool trial)
{
    struct supervisor *supervisor = reload->supervisor;
    remember_guarantees(reload);
    swap_totals(reload);
    session_quota_limit_totals(&supervisor->server, reload->config);
    bool fits = guarantees_change(reload, true) && guarantees_change(reload, false);
    if (fits && !trial)
        return true;
    guarantee_as_before(reload);
    swap_totals(reload);
    session_quota_limit_totals(&supervisor->server, supervisor->server.config);
    return fits;
}

static void limit_memory(struct reload *reload)
{
    for (size_t i = 0; i < reload->count; i++) {
        const struct change *change = &reload->changes[i];
        struct session *session = client_find(reload, change->client);
        if (!session)
            continue;
        struct allowance *grant = &session->grant.allowance;
        ACCOUNT_FOR_EACH (resource) {
            struct quota *account = &session->accounts[resource];
            account->limit = wanted_limit(change, session, resource);
            grant->of[resource] = (struct allowance_range){account->guarantee, account->limit};
        }
        allowance_explain(grant, &change->new.allowance);
    }
}

/* ---- the steps ---- */

/* Whether no client is being attached and no change is on its way to a worker. */
static bool server_is_settled(const struct supervisor *supervisor)
{
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->state == PROTO_CONNECTION_STATE_ATTACHING ||
            (session->state == PROTO_CONNECTION_STATE_ATTACHED && session->answers_due))
            return false;
    for (uint32_t i = 0; i < supervisor->server.device_count; i++)
        if (supervisor->server.devices[i].scheduling)
            return false;
    return true;
}

/* A client whose profile no longer exists keeps its limits; its user's and groups' totals still
 * change. */
static int compare_client(struct reload *reload, struct session *session)
{
    struct supervisor *supervisor = reload->supervisor;
    struct change *change = &reload->changes[reload->count];
    *change = (struct change){.client = session->number, .was = session->grant};
    if (session_attach_grant(session, supervisor->server.config, session->device, &session->wish,
                             &change->old) < 0)
        change->old = session->grant;
    if (session_attach_grant(session, reload->config, session->device, &session->wish,
                             &change->new) < 0) {
        log_warning(MESSAGE_TEXT(log_profile_gone), session->number, session->asked.profile);
        change->new = change->old;
    }
    int result = session_quota_find_totals(session, reload->config, &change->totals);
    reload->count += result == 0;
    return result;
}

static void clients_compare(struct reload *reload)
{
    struct supervisor *supervisor = reload->supervisor;
    reload->changes = calloc((size_t)supervisor->server.sessions + 1, sizeof *reload->changes);
    int result = reload->changes ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < supervisor->server.device_count; i++)
        reload->old[i] = supervisor->server.devices[i].schedule;
    struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (result == 0 && session->state == PROTO_CONNECTION_STATE_ATTACHED)
            result = compare_client(reload, session);
    if (result < 0)
        reload_fail_errno(reload, result);
    else
        change_memory(reload, true);
}

static void log_new(const struct supervisor *supervisor)
{
    const struct config *config = supervisor->server.config;
    if (!config)
        return;
    log_notice(MESSAGE_TEXT(log_config), config->file, config->profile_count, config->rule_count);
    for (uint32_t i = 0; config->time_line && i < supervisor->server.device_count; i++)
        if (!schedule_time_enforced(supervisor->server.devices[i].schedule.mode))
            log_notice(MESSAGE_TEXT(log_config_time), config->file, config->time_line, i,
                       proto_mode_name(supervisor->server.devices[i].schedule.mode));
}

static void log_forgotten(enum total_kind kind, uint32_t id, unsigned parts)
{
    for (enum resource i = 0; i < RESOURCES; i++)
        if (parts & RESOURCE_BIT(i))
            log_notice(MESSAGE_TEXT(log_total_forgotten), kind == TOTAL_GROUP ? "group" : "user",
                       id, allowance_resource(i)->phrase);
}

static void take_effect(struct reload *reload)
{
    struct supervisor *supervisor = reload->supervisor;
    struct config *before = supervisor->server.config;
    limit_memory(reload);
    supervisor->server.config = reload->config;
    reload->config = before;
    total_override_forget(&supervisor->server.total_overrides, supervisor->server.config,
                          log_forgotten);
    log_new(supervisor);
}

static void reload_finish(struct reload *reload)
{
    struct supervisor *supervisor = reload->supervisor;
    for (size_t i = 0; i < reload->count; i++)
        session_quota_drop_totals(&supervisor->server, &reload->changes[i].totals);
    free(reload->changes);
    config_free(reload->config);
    supervisor->reload = NULL;
    supervisor->server.attaching_waits = false;
    struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->parked.present &&
            supervisor->server.devices[session->parked.body.device].state == DEVICE_READY)
            session_unpark(session);
}

static void each_client(struct reload *reload,
                        void (*ask)(struct reload *, const struct change *, struct session *))
{
    for (size_t i = 0; i < reload->count; i++) {
        struct session *session = client_find(reload, reload->changes[i].client);
        if (session)
            ask(reload, &reload->changes[i], session);
    }
}

static void take_step(struct reload *reload, enum step step)
{
    switch (step) {
    case STEP_WAIT:
        clients_compare(reload);
        break;
    case STEP_LOWER:
        each_client(reload, requests_lower);
        break;
    case STEP_SCHEDULE:
        for (uint32_t i = 0; i < reload->supervisor->server.device_count; i++)
            device_reschedule(reload, i);
        break;
    case STEP_SHARE:
        each_client(reload, shares_change);
        break;
    case STEP_MEMORY:
        if (!reload->back && change_memory(reload, false))
            take_effect(reload);
        break;
    case STEP_OVER:
        break;
    }
}

/* Takes the steps that need no answer first. Returns whether the reload is over. */
static bool steps_advance(struct reload *reload)
{
    while (!reload->due) {
        if (reload->why.number && !reload->back) {
            reload->back = true;
            reload->step = reload->asked ? STEP_LOWER : STEP_OVER;
        }
        if (reload->step == STEP_OVER ||
            (reload->step == STEP_WAIT && !server_is_settled(reload->supervisor)))
            break;
        take_step(reload, reload->step++);
    }
    return !reload->due && reload->step == STEP_OVER;
}

static uint32_t reload_begin(struct supervisor *supervisor, struct config *config, bool *over,
                             reload_done *done, void *context, struct error *why)
{
    struct reload *reload = calloc(1, sizeof *reload);
    if (!reload) {
        config_free(config);
        return error_set(why, MESSAGE(server_no_memory));
    }
    *reload = (struct reload){
        .supervisor = supervisor, .config = config, .done = done, .context = context};
    supervisor->reload = reload;
    supervisor->server.attaching_waits = true;
    *over = steps_advance(reload);
    if (!*over)
        return 0;
    reload_finish(reload);
    uint32_t error = reload->why.number;
    if (error)
        *why = reload->why;
    free(reload);
    return error;
}

static uint32_t config_read(const struct supervisor *supervisor, struct config **config,
                            struct error *why)
{
    const struct settings *settings = supervisor->server.settings;
    *config = NULL;
    if (!settings->config[0])
        return 0;
    if (access(settings->config, F_OK) < 0 && errno == ENOENT) {
        /* A file that nobody asked for may be missing, but not vanish: its limits would with it. */
        if (supervisor->server.config)
            return error_set(why, MESSAGE(config_vanished), settings->config);
        if (!settings->config_named)
            return 0;
    }
    uint32_t error = config_load(config, settings->config, why);
    if (!error)
        error = config_resolve(*config, &settings->schedule, supervisor->uuids,
                               supervisor->server.device_count, why);
    return error;
}

uint32_t reload_start(struct supervisor *supervisor, bool *over, reload_done *done, void *context,
                      struct error *why)
{
    struct config *config;
    *over = true;
    if (supervisor->reload)
        return error_set(why, MESSAGE(reload_under_way));
    uint32_t error = config_read(supervisor, &config, why);
    if (error) {
        config_free(config);
        return error;
    }
    return reload_begin(supervisor, config, over, done, context, why);
}

void reload_advance(struct supervisor *supervisor)
{
    struct reload *reload = supervisor->reload;
    if (!reload || !steps_advance(reload))
        return;
    reload_finish(reload);
    reload->done(reload->context, reload->why.number, reload->why.text);
    free(reload);
}
