/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits/limits.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/account_moves.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/reading.h"
#include "server/supervisor/config/copies.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/device/device_schedule.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/own_request.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/supervisor_private.h"
#include "server/supervisor/transaction.h"

/* Values of a file are changed in this name, which the log shows. */
#define BY_FILE "the configuration"

/* Requests that fall make room for those that rise; and the workers need the new modes before they
 * see what is to hold in them. How many multiprocessors a client has is asked last, since an answer
 * before a refusal would be wrong when all is put back. */
enum rank { RANK_LOWER, RANK_SCHEDULE, RANK_ACCOUNT, RANK_MEMBER, RANK_SHARE, RANK_TOLD };

/* One client's grants under the old and the new file. */
struct change {
    uint32_t client;
    struct grant old, new;        /* as the two files say */
    struct allowance before;      /* what the client had */
    struct session_totals totals; /* under the file that is not in force */
    struct client_accounts counted_in;
    uint64_t total_limits[RESOURCES]; /* the lowest of the totals that the client counted in */
    struct allowance guaranteed;      /* before the reload, in bytes */
    bool reset;                       /* values on which the files agree change too */
    unsigned own; /* RESOURCE_BITs of requests that were the client's own, or become that: they
                     are as in `new`, even if the files agree */
};

struct reload {
    struct supervisor *supervisor;
    struct config
        *config; /* the one that is not in force: the new one, after success the old one */
    struct change *changes;
    size_t count;
    bool reset;                       /* nothing that an administrator has set stays */
    bool of_totals;                   /* overrides alone change; the configuration stays */
    struct total_overrides overrides; /* with either: those that are not in force */
    struct account_moves accounts;    /* what the clients' accounts become */
    struct transaction transaction;   /* of all that workers enforce */
    bool planned;
    struct reload_asker asker;
};

static uint32_t refuse_errno(int result, struct error *why)
{
    return error_set(why, MESSAGE(request_failed), strerror(-result));
}

static struct session *client_find(const struct reload *reload, uint32_t client)
{
    return clients_find_attached(reload->supervisor, client);
}

/* ---- what the worker is asked ---- */

/* A client that disconnected meanwhile has nothing to change. */
static int move_make(void *context, const struct transaction_move *move, bool back,
                     change_done *done, void *of_done)
{
    struct reload *reload = context;
    if (move->subject == TRANSACTION_ACCOUNT)
        return account_moves_make(&reload->accounts, move->number, back, done, of_done);
    if (move->subject == TRANSACTION_DEVICE)
        return device_schedule_set(&reload->supervisor->server.devices[move->number],
                                   back ? &move->device.back : &move->device.to, move->device.parts,
                                   &(struct change_asker){reload->asker.by, done, of_done});
    struct session *session = client_find(reload, move->number);
    if (!session)
        return 1;
    /* take_effect logs once what a client has in the end. */
    const struct change_asker silent = {"", done, of_done};
    return back ? session_limits_put_back(session, &move->client.back, &silent)
                : session_limits_set(session, &move->client.to, &silent);
}

static bool account_refuse(const struct reload *reload, const struct account_move *move,
                           uint32_t error, const char *text, struct error *why)
{
    if (!move->client)
        error_set(why, error, MESSAGE_TEXT(reload_gpu), move->device, text);
    else if (client_find(reload, move->client))
        error_set(why, error, MESSAGE_TEXT(reload_client), move->client, text);
    else
        return false;
    return true;
}

static bool move_refuse(void *context, const struct transaction_move *move, int result,
                        uint32_t error, const char *text, struct error *why)
{
    const struct reload *reload = context;
    if (result < 0)
        refuse_errno(result, why);
    else if (move->subject == TRANSACTION_ACCOUNT)
        return account_refuse(reload, &reload->accounts.of[move->number], error, text, why);
    else if (move->subject == TRANSACTION_DEVICE)
        error_set(why, error, MESSAGE_TEXT(reload_gpu), move->number, text);
    else if (client_find(reload, move->number))
        error_set(why, error, MESSAGE_TEXT(reload_client), move->number, text);
    else
        return false;
    return true;
}

/* The earlier values are refused now: there is nothing better to go back to. */
static void move_lose(void *context, const struct transaction_move *move, int result,
                      uint32_t error, const char *text)
{
    struct error why;
    if (move_refuse(context, move, result, error, text, &why))
        log_error(MESSAGE_TEXT(log_reload_not_undone), why.text);
}

static bool is_own(const struct change *change, enum resource resource)
{
    return change->own & RESOURCE_BIT(resource);
}

static uint64_t value_if_changed(const struct change *change, uint64_t old, uint64_t new,
                                 uint64_t now)
{
    return new == old && !change->reset ? now : new;
}

/* The share of the device that the reload gives a client. A value that an administrator has set
 * stays if both files say the same about it, but a request is cut to its limit. */
static struct allowance wanted_limits(const struct change *change, const struct allowance *now)
{
    const struct allowance *old = &change->old.allowance, *new = &change->new.allowance;
    struct allowance to = *now;
    for (enum resource i = 0; i < RESOURCES; i++) {
        struct allowance_range *range = &to.of[i];
        if (!allowance_resource(i)->by_worker)
            continue;
        range->limit = value_if_changed(change, old->of[i].limit, new->of[i].limit, range->limit);
        range->request = is_own(change, i) ? new->of[i].request
                                           : value_if_changed(change, old->of[i].request,
                                                              new->of[i].request, range->request);
        range->request = min(range->request, range->limit);
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (new->scalar[i] != old->scalar[i] || change->reset) {
            to.scalar[i] = new->scalar[i];
            to.scalar_from[i] = new->scalar_from[i];
        }
    return to;
}

/* The requests that fall go first, to make room for those that rise. */
static void plan_client(struct reload *reload, const struct change *change)
{
    const struct allowance *now = &client_find(reload, change->client)->grant.allowance;
    const struct allowance to = wanted_limits(change, now);
    struct allowance lower = allowance_none, share = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++) {
        if (!allowance_resource(i)->by_worker)
            continue;
        if (to.of[i].limit != now->of[i].limit)
            share.of[i].limit = to.of[i].limit;
        if (to.of[i].request < now->of[i].request)
            lower.of[i].request = to.of[i].request;
        if (to.of[i].request > now->of[i].request)
            share.of[i].request = to.of[i].request;
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (to.scalar[i] != now->scalar[i]) {
            share.scalar[i] = to.scalar[i];
            share.scalar_from[i] = to.scalar_from[i];
        }
    transaction_add_client(&reload->transaction, RANK_LOWER, change->client, &lower, now);
    transaction_add_client(&reload->transaction, RANK_SHARE, change->client, &share, now);
}

static void plan_device(struct reload *reload, uint32_t index)
{
    const struct server *server = &reload->supervisor->server;
    const struct schedule *unsaid = &server->settings->schedule;
    const struct schedule *now = &server->devices[index].schedule;
    const struct schedule *old = &server->devices[index].configured;
    const struct schedule *new = config_schedule(reload->config, index, unsaid);
    transaction_add_device(&reload->transaction, RANK_SCHEDULE, index, new, now,
                           schedule_differs(reload->reset ? now : old, new));
}

/* ---- memory: at once ---- */

/* A limit changes only if the two files differ about it. */
static uint64_t wanted_limit(const struct change *change, const struct session *session,
                             enum resource resource)
{
    uint64_t old = change->old.allowance.of[resource].limit;
    uint64_t new = change->new.allowance.of[resource].limit;
    return min(value_if_changed(change, old, new, session->quotas[resource].limit),
               session->window.bytes);
}

/* A request changes likewise, and stays below its limit. falling: none rises. */
static struct allowance wanted_guarantees(const struct change *change,
                                          const struct session *session, bool falling)
{
    struct allowance wanted = change->guaranteed;
    QUOTA_FOR_EACH (i) {
        const uint64_t old = change->old.allowance.of[i].request;
        const uint64_t new = change->new.allowance.of[i].request;
        const uint64_t now = wanted.of[i].request;
        const uint64_t said = is_own(change, i) ? new : value_if_changed(change, old, new, now);
        uint64_t to = min(said, wanted_limit(change, session, i));
        wanted.of[i].request = falling ? min(to, now) : to;
        if (new != old || change->reset)
            wanted.of_from[i].request =
                allowance_source(&change->new.allowance, i, ALLOWANCE_REQUEST);
    }
    return wanted;
}

static void swap_overrides(struct reload *reload)
{
    struct total_overrides *in_force = &reload->supervisor->server.total_overrides;
    const struct total_overrides before = *in_force;
    if (!reload->reset && !reload->of_totals)
        return;
    *in_force = reload->overrides;
    reload->overrides = before;
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
 * there is no room (*why says so), and some have changed. */
static bool guarantees_change(struct reload *reload, bool falling, struct error *why)
{
    for (size_t i = 0; i < reload->count; i++) {
        const struct change *change = &reload->changes[i];
        struct session *session = client_find(reload, change->client);
        if (!session)
            continue;
        const struct allowance wanted = wanted_guarantees(change, session, falling);
        if (session_quota_guarantee(session, &wanted, why)) {
            error_prefix(why, "client %u: ", change->client);
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
            QUOTA_FOR_EACH (resource)
                to.of[resource].request =
                    rising ? change->guaranteed.of[resource].request
                           : min(change->guaranteed.of[resource].request, to.of[resource].request);
            session_quota_restore(session, &to);
        }
}

static void remember_clients(struct reload *reload)
{
    for (size_t i = 0; i < reload->count; i++) {
        struct change *change = &reload->changes[i];
        const struct session *session = client_find(reload, change->client);
        if (!session)
            continue;
        change->guaranteed = session_quota_guarantees(session);
        change->counted_in = session->counts_in;
        QUOTA_FOR_EACH (resource)
            change->total_limits[resource] = total_members_limit(session->totals.of[resource]);
    }
}

/* Changes all memory; or changes nothing, and *why says why. trial: only finds out whether it would
 * fit. */
static bool change_memory(struct reload *reload, bool trial, struct error *why)
{
    struct supervisor *supervisor = reload->supervisor;
    remember_clients(reload);
    swap_overrides(reload);
    swap_totals(reload);
    session_quota_limit_totals(&supervisor->server, reload->config);
    bool fits = guarantees_change(reload, true, why) && guarantees_change(reload, false, why);
    if (fits && !trial)
        return true;
    guarantee_as_before(reload);
    swap_overrides(reload);
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
        QUOTA_FOR_EACH (resource) {
            struct quota *quota = &session->quotas[resource];
            quota->limit = wanted_limit(change, session, resource);
            grant->of[resource] = (struct allowance_range){quota->guarantee, quota->limit};
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

/* A client that was taken over has the values that the last server's file gave it, but for those
 * that an administrator has set since. */
static void find_earlier(const struct session *session, struct grant *old)
{
    const struct allowance said = old->allowance, *now = &session->grant.allowance;
    const enum allowance_origin admin = ALLOWANCE_BY_ADMIN;
    *old = session->grant;
    for (enum resource i = 0; i < RESOURCES; i++) {
        if (allowance_source(now, i, ALLOWANCE_REQUEST).origin == admin)
            old->allowance.of[i].request = said.of[i].request;
        if (allowance_source(now, i, ALLOWANCE_LIMIT).origin == admin)
            old->allowance.of[i].limit = said.of[i].limit;
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (now->scalar_from[i].origin == admin)
            old->allowance.scalar[i] = said.scalar[i];
}

/* A client whose profile no longer exists keeps its limits; its user's and groups' totals still
 * change. */
static int compare_client(struct reload *reload, struct session *session)
{
    struct supervisor *supervisor = reload->supervisor;
    struct change *change = &reload->changes[reload->count];
    *change = (struct change){
        .client = session->number, .reset = reload->reset, .before = session->grant.allowance};
    if (session_attach_grant(session, supervisor->server.config, session->device, &session->wish,
                             &change->old) < 0)
        change->old = session->grant;
    if (session->keeping.earlier && !reload->of_totals)
        find_earlier(session, &change->old);
    if (session_attach_grant(session, reload->config, session->device, &session->wish,
                             &change->new) < 0) {
        log_warning(MESSAGE_TEXT(log_profile_gone), session->number, session->asked.profile);
        change->new = change->old;
    }
    int result = session_quota_find_totals(session, reload->config, &change->totals);
    if (result < 0)
        return result;
    for (enum resource i = 0; i < RESOURCES; i++)
        if (session_own_request_counts(session, i) && change->old.own[i] && !change->new.own[i])
            change->own |= RESOURCE_BIT(i);
    reload->count++;
    return 0;
}

/* A request that an administrator has set stays that, unless everything is set anew. */
static void describe_request(struct reload *reload, const struct change *change,
                             struct own_request *request)
{
    struct session *session = client_find(reload, change->client);
    const struct allowance *now = &session->grant.allowance;
    const struct allowance *old = &change->old.allowance, *new = &change->new.allowance;
    *request = (struct own_request){.session = session};
    session_attach_accounts(session, reload->config, &reload->supervisor->server.total_overrides,
                            &request->accounts);
    for (enum resource i = 0; i < RESOURCES; i++) {
        const bool own = change->new.own[i] && (change->reset || !change->old.own[i] ||
                                                session_own_request_counts(session, i));
        if (own)
            request->asked[i] = change->new.own[i];
        else if (is_own(change, i))
            request->reserved[i] = new->of[i].request;
        else
            request->reserved[i] = value_if_changed(change, old->of[i].request, new->of[i].request,
                                                    now->of[i].request);
    }
}

/* Requests that clients make for themselves give way to those that the file makes for them. */
static int own_requests_plan(struct reload *reload)
{
    struct own_request *requests = calloc(reload->count + 1, sizeof *requests);
    if (!requests)
        return -ENOMEM;
    for (size_t i = 0; i < reload->count; i++)
        describe_request(reload, &reload->changes[i], &requests[i]);
    int result = session_own_requests_divide(&reload->supervisor->server, requests, reload->count);
    for (size_t i = 0; result == 0 && i < reload->count; i++)
        for (enum resource resource = 0; resource < RESOURCES; resource++)
            if (requests[i].asked[resource]) {
                reload->changes[i].own |= RESOURCE_BIT(resource);
                reload->changes[i].new.allowance.of[resource].request =
                    requests[i].granted[resource];
            }
    free(requests);
    return result;
}

static int clients_compare(struct reload *reload)
{
    const struct server *server = &reload->supervisor->server;
    reload->changes = calloc((size_t)server->sessions + 1, sizeof *reload->changes);
    int result = reload->changes ? 0 : -ENOMEM;
    struct session *session;
    swap_overrides(reload);
    LIST_FOR_EACH (session, &server->session_list, link)
        if (result == 0 && session->state == PROTO_CONNECTION_STATE_ATTACHED)
            result = compare_client(reload, session);
    if (result == 0)
        result = own_requests_plan(reload);
    if (result == 0)
        result = account_moves_plan(&reload->accounts, reload->supervisor, reload->config,
                                    &server->total_overrides);
    swap_overrides(reload);
    return result;
}

static enum rank account_rank(const struct account_move *move)
{
    if (move->client)
        return move->told ? RANK_TOLD : RANK_MEMBER;
    return account_moves_gives(move) ? RANK_LOWER : RANK_ACCOUNT;
}

struct forgetting {
    struct saved *saved;
    bool changed; /* what is saved */
};

static void total_forgotten(void *context, const struct account_owner *owner, unsigned parts)
{
    struct forgetting *forgetting = context;
    char text[ACCOUNT_OWNER_TEXT];
    forgetting->changed |= saved_take_totals(forgetting->saved, owner, parts);
    account_owner_text(owner, text);
    for (enum resource i = 0; i < RESOURCES; i++)
        if (parts & RESOURCE_BIT(i))
            log_notice(MESSAGE_TEXT(log_total_forgotten), text, allowance_resource(i)->phrase);
}

/* A saved setting of a GPU holds as long as one that was set: until the file says something else.
 */
static bool forget_schedules(struct reload *reload)
{
    const struct server *server = &reload->supervisor->server;
    const struct schedule *unsaid = &server->settings->schedule;
    bool any = false;
    for (uint32_t i = 0; i < server->device_count; i++) {
        char uuid[LIMITS_UUID_TEXT];
        any |= saved_take_schedule(reload->supervisor->saved,
                                   limits_format_uuid(reload->supervisor->uuids[i], uuid),
                                   schedule_differs(&server->devices[i].configured,
                                                    config_schedule(reload->config, i, unsaid)));
    }
    return any;
}

static void remember_configured(struct server *server)
{
    for (uint32_t i = 0; i < server->device_count; i++)
        server->devices[i].configured =
            *config_schedule(server->config, i, &server->settings->schedule);
}

static void configuration_takes_effect(struct reload *reload)
{
    struct supervisor *supervisor = reload->supervisor;
    struct config *before = supervisor->server.config;
    struct forgetting forgetting = {.saved = supervisor->saved};
    limit_memory(reload);
    forgetting.changed = forget_schedules(reload);
    supervisor->server.config = reload->config;
    reload->config = before;
    remember_configured(&supervisor->server);
    accounting_look(&supervisor->server);
    total_override_forget(&supervisor->server.total_overrides, supervisor->server.config,
                          total_forgotten, &forgetting);
    /* A GPU that is not there now is one of the objects of which nothing stays after a reset. */
    if (reload->reset)
        forgetting.changed |= saved_clear(supervisor->saved);
    /* A file that can't be written is logged: the reload itself has succeeded. */
    if (forgetting.changed && saved_write(supervisor->saved, NULL, NULL) < 0)
        log_error(MESSAGE_TEXT(log_saved_not_written), supervisor->saved->file, strerror(ENOMEM));
    reading_log(supervisor);
}

/* ---- how much changed, for the administrator ---- */

static bool client_differs(const struct change *change, const struct session *session)
{
    const struct client_accounts *before = &change->counted_in, *now = &session->counts_in;
    bool differs = !allowance_equal(&change->before, &session->grant.allowance) ||
                   before->count != now->count ||
                   memcmp(before->of, now->of, sizeof before->of) != 0;
    QUOTA_FOR_EACH (i)
        differs |= change->total_limits[i] != total_members_limit(session->totals.of[i]);
    return differs;
}

static void count_changes(struct reload *reload)
{
    struct supervisor *supervisor = reload->supervisor;
    supervisor->reloaded.clients = 0;
    supervisor->reloaded.settings = transaction_settings(&reload->transaction);
    for (size_t i = 0; i < reload->count; i++) {
        const struct session *session = client_find(reload, reload->changes[i].client);
        if (session && client_differs(&reload->changes[i], session))
            supervisor->reloaded.clients++;
    }
}

static void take_effect(struct reload *reload)
{
    struct supervisor *supervisor = reload->supervisor;
    struct session *session;
    if (!reload->of_totals)
        configuration_takes_effect(reload);
    for (size_t i = 0; i < reload->count; i++) {
        session = client_find(reload, reload->changes[i].client);
        if (!session)
            continue;
        session->keeping.earlier &= reload->of_totals;
        memcpy(session->grant.own, reload->changes[i].new.own, sizeof session->grant.own);
    }
    for (uint32_t i = 0; reload->reset && i < supervisor->server.device_count; i++)
        supervisor->server.devices[i].newcomers = allowance_none;
    account_moves_commit(supervisor);
    /* With the totals that clients count in from now on. */
    for (size_t i = 0; i < reload->count; i++) {
        session = client_find(reload, reload->changes[i].client);
        if (session && !allowance_equal(&reload->changes[i].before, &session->grant.allowance))
            session_limits_log(session, reload->asker.by);
    }
    /* When the answer is there this server may be ended, and the next one has to find what is in
     * force. */
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        session_touch(session);
    if (!reload->of_totals)
        count_changes(reload);
}

/* Memory is the supervisor's own, so it changes in one go, with all else that needs nobody. */
static uint32_t reload_commit(void *context, struct error *why)
{
    struct reload *reload = context;
    if (!change_memory(reload, false, why))
        return why->number;
    take_effect(reload);
    return 0;
}

/* The loop looks after answers itself, when no callback is on the stack. */
static const struct transaction_work reload_moves = {
    .make = move_make, .refuse = move_refuse, .lose = move_lose, .commit = reload_commit};

static void reload_finish(struct reload *reload)
{
    struct supervisor *supervisor = reload->supervisor;
    for (size_t i = 0; i < reload->count; i++)
        session_quota_drop_totals(&supervisor->server, &reload->changes[i].totals);
    free(reload->changes);
    transaction_free(&reload->transaction);
    account_moves_free(&reload->accounts);
    total_override_free(&reload->overrides);
    if (!reload->of_totals && !reload->transaction.why.number && supervisor->server.keeper)
        copies_keep_config(&supervisor->copies);
    if (!reload->of_totals)
        config_free(reload->config);
    supervisor->reload = NULL;
    supervisor->server.attaching_waits = false;
    session_own_requests_settle(&supervisor->server);
    struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->parked.present &&
            supervisor->server.devices[session->parked.body.device].state == DEVICE_READY)
            session_unpark(session);
}

/* Whether there is room for the new guarantees is tried before anybody is asked. */
static void reload_plan(struct reload *reload)
{
    const struct server *server = &reload->supervisor->server;
    struct error *why = &reload->transaction.why;
    size_t room = 2 * (size_t)server->sessions + server->device_count;
    reload->planned = true;
    int result = clients_compare(reload);
    room += reload->accounts.count;
    if (result == 0)
        result = transaction_init(&reload->transaction, room, &reload_moves, reload);
    for (size_t i = 0; result == 0 && i < reload->count; i++)
        plan_client(reload, &reload->changes[i]);
    for (size_t i = 0; result == 0 && i < reload->accounts.count; i++)
        transaction_add_account(&reload->transaction, account_rank(&reload->accounts.of[i]),
                                (uint32_t)i);
    for (uint32_t i = 0; result == 0 && i < server->device_count; i++)
        plan_device(reload, i);
    if (result < 0)
        refuse_errno(result, why);
    else
        change_memory(reload, true, why);
}

/* Goes as far as it can without further answers. Returns whether the reload is over. */
static bool go_on(struct reload *reload)
{
    if (!reload->planned && !server_is_settled(reload->supervisor))
        return false;
    if (!reload->planned)
        reload_plan(reload);
    return transaction_advance(&reload->transaction);
}

/* Begins a copy of *wanted; on failure what it has is freed. */
static uint32_t reload_begin(const struct reload *wanted, bool *over, struct error *why)
{
    struct supervisor *supervisor = wanted->supervisor;
    struct reload *reload = malloc(sizeof *reload);
    if (!reload) {
        struct total_overrides overrides = wanted->overrides;
        total_override_free(&overrides);
        if (!wanted->of_totals)
            config_free(wanted->config);
        return error_set(why, MESSAGE(server_no_memory));
    }
    *reload = *wanted;
    supervisor->reload = reload;
    supervisor->server.attaching_waits = true;
    *over = go_on(reload);
    if (!*over)
        return 0;
    uint32_t error = reload->transaction.why.number;
    if (error)
        *why = reload->transaction.why;
    reload_finish(reload);
    free(reload);
    return error;
}

uint32_t reload_totals(struct supervisor *supervisor, struct total_overrides *overrides,
                       const struct reload_asker *asker, bool *over, struct error *why)
{
    const struct reload reload = {.supervisor = supervisor,
                                  .config = supervisor->server.config,
                                  .of_totals = true,
                                  .asker = *asker,
                                  .overrides = *overrides};
    *over = true;
    return reload_begin(&reload, over, why);
}

uint32_t reload_start(struct supervisor *supervisor, bool taking_over, struct error *why)
{
    struct reload reload = {.supervisor = supervisor, .asker.by = BY_FILE};
    bool over;
    uint32_t error = reading_now(supervisor, taking_over, &reload.config, why);
    return error ? error : reload_begin(&reload, &over, why);
}

/* ---- the file, while the server serves clients ---- */

/* A reload whose file is being read. It begins when that is done and no other one is under way. */
struct reload_file {
    struct reading *reading;
    bool reset, read;
    struct reload_asker asker;
};

static void file_was_read(void *context)
{
    struct reload_file *file = context;
    file->read = true;
}

uint32_t reload_file(struct supervisor *supervisor, bool reset, reload_done *done, void *context,
                     struct error *why)
{
    if (supervisor->reload || supervisor->reload_file)
        return error_set(why, MESSAGE(reload_under_way));
    struct reload_file *file = calloc(1, sizeof *file);
    struct reading *reading = file ? reading_start(supervisor, file_was_read, file) : NULL;
    if (!reading) {
        free(file);
        return error_set(why, MESSAGE(server_no_memory));
    }
    *file =
        (struct reload_file){.reading = reading, .reset = reset, .asker = {BY_FILE, done, context}};
    supervisor->reload_file = file;
    return 0;
}

/* The outcome of a reload of the file: why has number 0 if that is in force. */
static void file_is_over(struct supervisor *supervisor, const struct error *why)
{
    supervisor->refused.why = *why;
    supervisor->refused.copied &= why->number != 0;
}

static void begin_with_file(struct supervisor *supervisor)
{
    const struct reload_file file = *supervisor->reload_file;
    struct error why = {0};
    struct reload reload = {.supervisor = supervisor, .reset = file.reset, .asker = file.asker};
    bool over = true;
    free(supervisor->reload_file);
    supervisor->reload_file = NULL;
    uint32_t error = reading_take(file.reading, &reload.config, &why);
    if (!error && supervisor->stopping) {
        config_free(reload.config);
        error = error_set(&why, MESSAGE(server_stopping));
    }
    if (!error)
        error = reload_begin(&reload, &over, &why);
    if (over) {
        file_is_over(supervisor, &why);
        file.asker.done(file.asker.context, error, why.text);
    }
}

void reload_advance(struct supervisor *supervisor)
{
    struct reload *reload = supervisor->reload;
    if (reload && go_on(reload)) {
        const struct error why = reload->transaction.why;
        if (!reload->of_totals)
            file_is_over(supervisor, &why);
        reload_finish(reload);
        reload->asker.done(reload->asker.context, why.number, why.text);
        free(reload);
    }
    if (!supervisor->reload && supervisor->reload_file && supervisor->reload_file->read)
        begin_with_file(supervisor);
}
