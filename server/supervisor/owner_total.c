/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/owner_total.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits/limits.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/config/rules.h"
#include "server/supervisor/device/device_singly.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/supervisor_private.h"

static bool is_seen(const struct session *session, const struct account_owner *owner)
{
    return owner->kind == TOTAL_GROUP ? session->identity.gids != NULL : session->identity.known;
}

static bool has_accounts(const struct session *session)
{
    return session->quotas[RESOURCE_MEMORY].parent != NULL;
}

/* Whether a client counts in a total. Clients that can't be identified have a total of their
 * own. */
static bool client_counts(const struct session *session, const struct account_owner *owner)
{
    const struct identity *identity = &session->identity;
    if (!has_accounts(session) || owner->kind == TOTAL_CGROUP)
        return false;
    if (!is_seen(session, owner) || owner->id == CONFIG_ID_UNKNOWN)
        return !is_seen(session, owner) && owner->id == CONFIG_ID_UNKNOWN;
    if (owner->kind == TOTAL_USER)
        return session->uid == owner->id;
    for (size_t i = 0; i < identity->gid_count; i++)
        if (identity->gids[i] == owner->id)
            return true;
    return false;
}

static uint64_t quota_claim(const struct quota *quota)
{
    return max(quota->used, quota->guarantee);
}

/* Adds up what a client requests of an account's share. */
static void view_share(const struct supervisor *supervisor, const struct account_owner *owner,
                       enum resource resource, uint32_t device, struct total_view *view)
{
    const struct server *server = &supervisor->server;
    const struct proto_worker_account account =
        client_accounts_owner(&server->total_overrides, server->config, owner, &server->cache.key);
    const struct session *session;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device && session->device->index == device && session->counts_in.count &&
            session->counts_in.of[0].account == account.account) {
            view->clients++;
            view->used += session->grant.allowance.of[resource].request;
        }
}

static void view_memory(const struct supervisor *supervisor, const struct account_owner *owner,
                        enum resource resource, uint32_t device, struct total_view *view)
{
    const bool of_device = allowance_resource(resource)->of_device;
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (client_counts(session, owner) && (!of_device || session->device->index == device))
            view->used += quota_claim(&session->quotas[resource]);
}

uint64_t owner_total_user_limit(const struct supervisor *supervisor, uint32_t uid,
                                enum resource resource, uint32_t device)
{
    const struct server *server = &supervisor->server;
    const struct account_owner owner = {.kind = TOTAL_USER,
                                        .id = identity_uid_is_seen(uid) ? uid : CONFIG_ID_UNKNOWN};
    struct allowance limits;
    total_override_limits(&server->total_overrides, server->config, &owner, &limits);
    return session_quota_total_limit(
        &limits, resource,
        allowance_resource(resource)->of_device ? &server->devices[device] : NULL);
}

void owner_total_view(const struct supervisor *supervisor, const struct account_owner *owner,
                      enum resource resource, uint32_t device, struct total_view *view)
{
    struct allowance limits;
    const struct server *server = &supervisor->server;
    bool of_device = allowance_resource(resource)->of_device;
    unsigned set = total_override_limits(&server->total_overrides, server->config, owner, &limits);
    *view = (struct total_view){
        .set = (set & RESOURCE_BIT(resource)) != 0,
        .request = owner->id == CONFIG_ID_UNKNOWN ? ALLOWANCE_UNSET : limits.of[resource].request,
        .limit = session_quota_total_limit(&limits, resource,
                                           of_device ? &server->devices[device] : NULL)};
    if (allowance_resource(resource)->by_worker)
        view->singly_ns = device_singly_ns(&server->devices[device]);
    if (allowance_resource(resource)->by_worker)
        view_share(supervisor, owner, resource, device, view);
    else
        view_memory(supervisor, owner, resource, device, view);
}

static int compare_gids(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

/* The gids of all clients that have accounts, each once, ascending; *count: how many. NULL: none,
 * or without memory, with *count 0 or not. */
static uint32_t *gids_present(const struct server *server, size_t *count)
{
    const struct session *session;
    size_t room = 0, used = 0, unique = 0;
    LIST_FOR_EACH (session, &server->session_list, link)
        room += has_accounts(session) ? session->identity.gid_count : 0;
    *count = room;
    uint32_t *gids = room ? malloc(room * sizeof *gids) : NULL;
    if (!gids)
        return NULL;
    LIST_FOR_EACH (session, &server->session_list, link)
        for (size_t i = 0; has_accounts(session) && i < session->identity.gid_count; i++)
            gids[used++] = session->identity.gids[i];
    qsort(gids, used, sizeof *gids, compare_gids);
    for (size_t i = 0; i < used; i++)
        if (!unique || gids[unique - 1] != gids[i])
            gids[unique++] = gids[i];
    *count = unique;
    return gids;
}

static bool has_limit(const struct server *server, const struct account_owner *owner,
                      struct allowance *limits)
{
    total_override_limits(&server->total_overrides, server->config, owner, limits);
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_has(limits, i, ALLOWANCE_LIMIT))
            return true;
    return false;
}

static void tell_group(const struct server *server, const struct account_owner *owner,
                       const struct allowance *limits, owner_total_group *each, void *context)
{
    const struct session *session;
    for (uint32_t device = 0; device < server->device_count; device++) {
        struct group_total total = {.gid = owner->id, .device = device};
        for (enum resource i = 0; i < RESOURCES; i++)
            total.limit[i] = session_quota_total_limit(
                limits, i, allowance_resource(i)->of_device ? &server->devices[device] : NULL);
        LIST_FOR_EACH (session, &server->session_list, link)
            if (client_counts(session, owner) && session->device->index == device) {
                total.clients++;
                total.memory_held += quota_claim(&session->quotas[RESOURCE_MEMORY]);
            }
        each(context, &total);
    }
}

int owner_total_each_group(const struct supervisor *supervisor, uint32_t most,
                           owner_total_group *each, void *context)
{
    const struct server *server = &supervisor->server;
    size_t count;
    uint32_t *gids = gids_present(server, &count), told = 0;
    int left_out = 0;
    if (!gids)
        return count ? -ENOMEM : 0;
    for (size_t i = 0; i < count; i++) {
        const struct account_owner owner = {.kind = TOTAL_GROUP, .id = gids[i]};
        struct allowance limits;
        if (!has_limit(server, &owner, &limits))
            continue;
        if (told++ < most)
            tell_group(server, &owner, &limits, each, context);
        else
            left_out++;
    }
    free(gids);
    return left_out;
}

/* Whether two allowances say the same of a bound, and not that it is unset. */
static bool bound_agrees(const struct allowance *a, const struct allowance *b,
                         enum resource resource, enum allowance_bound bound)
{
    const struct allowance_range *of = &a->of[resource], *part = &a->part[resource];
    const struct allowance_range *of_b = &b->of[resource], *part_b = &b->part[resource];
    if (!allowance_has(a, resource, bound))
        return false;
    return bound == ALLOWANCE_REQUEST
               ? of->request == of_b->request && part->request == part_b->request
               : of->limit == of_b->limit && part->limit == part_b->limit;
}

bool owner_total_is_set(const struct supervisor *supervisor, const struct account_owner *owner,
                        enum resource resource, const struct allowance *limits)
{
    struct allowance now;
    const struct server *server = &supervisor->server;
    unsigned set = total_override_limits(&server->total_overrides, server->config, owner, &now);
    return (set & RESOURCE_BIT(resource)) &&
           (bound_agrees(limits, &now, resource, ALLOWANCE_LIMIT) ||
            bound_agrees(limits, &now, resource, ALLOWANCE_REQUEST));
}

/* ---- a change ---- */

/* A change of totals that is under way. */
struct pending_total {
    struct supervisor *supervisor;
    struct account_owner owner;
    char cgroup[ACCOUNT_CGROUP_MAX + 1];
    unsigned limits, requests; /* RESOURCE_BITs of what changes */
    char by[64];
    struct reload_asker asker;
};

static const char *format_limit(const struct allowance *limits, enum resource resource,
                                char text[UNITS_TEXT * 2])
{
    char part[UNITS_TEXT];
    if (limits->part[resource].limit != ALLOWANCE_UNSET)
        snprintf(text, UNITS_TEXT * 2, "%s %% of each GPU's",
                 units_format_percentage((uint32_t)limits->part[resource].limit, part));
    else if (limits->of[resource].limit != ALLOWANCE_UNSET)
        allowance_format(resource, limits->of[resource].limit, text);
    else
        strcpy(text, "no limit");
    return text;
}

static const char *format_request(const struct allowance *limits, enum resource resource,
                                  char text[UNITS_TEXT * 2])
{
    if (!allowance_has(limits, resource, ALLOWANCE_REQUEST))
        return strcpy(text, "no request");
    return allowance_format(resource, limits->of[resource].request, text);
}

/* Without a value that is set, what the configuration says holds again. Where the worker enforces
 * a resource, one of its bounds may be set and the other one be the configuration's. */
static const char *as_configured(const struct pending_total *pending,
                                 const struct allowance *limits, unsigned set,
                                 enum resource resource, enum allowance_bound bound)
{
    const struct server *server = &pending->supervisor->server;
    const struct total_overrides none = {0};
    struct allowance says;
    total_override_limits(&none, server->config, &pending->owner, &says);
    const bool same = allowance_has(limits, resource, bound)
                          ? bound_agrees(limits, &says, resource, bound)
                          : !allowance_has(&says, resource, bound);
    return !(set & RESOURCE_BIT(resource)) || (allowance_resource(resource)->by_worker && same)
               ? ", as configured"
               : "";
}

static void log_set(const struct pending_total *pending)
{
    const struct server *server = &pending->supervisor->server;
    char owner[ACCOUNT_OWNER_TEXT];
    struct allowance limits;
    const unsigned set =
        total_override_limits(&server->total_overrides, server->config, &pending->owner, &limits);
    account_owner_text(&pending->owner, owner);
    for (enum resource i = 0; i < RESOURCES; i++) {
        const char *phrase = allowance_resource(i)->phrase;
        char text[UNITS_TEXT * 2];
        if (pending->requests & RESOURCE_BIT(i))
            log_notice(MESSAGE_TEXT(log_total_set_request), owner, pending->asker.by, phrase,
                       format_request(&limits, i, text),
                       as_configured(pending, &limits, set, i, ALLOWANCE_REQUEST));
        if (pending->limits & RESOURCE_BIT(i))
            log_notice(MESSAGE_TEXT(log_total_set), owner, pending->asker.by, phrase,
                       format_limit(&limits, i, text),
                       as_configured(pending, &limits, set, i, ALLOWANCE_LIMIT));
    }
}

static void pending_ended(void *context, uint32_t error, const char *text)
{
    struct pending_total *pending = context;
    if (!error)
        log_set(pending);
    pending->asker.done(pending->asker.context, error, text);
    free(pending);
}

/* A resource that the worker enforces has two bounds: the one that does not change stays as it is.
 * Where both are the configuration's, nothing is left that was set. */
static void complete_shares(const struct server *server, const struct account_owner *owner,
                            const struct total_change *change, struct allowance *limits)
{
    struct allowance now, says;
    const struct total_overrides none = {0};
    total_override_limits(&server->total_overrides, server->config, owner, &now);
    total_override_limits(&none, server->config, owner, &says);
    for (enum resource i = 0; i < RESOURCES; i++) {
        struct allowance_range *to = &limits->of[i];
        if (!allowance_resource(i)->by_worker)
            continue;
        if (!(change->parts & RESOURCE_BIT(i)))
            to->limit = now.of[i].limit;
        else if (to->limit == ALLOWANCE_UNSET)
            to->limit = says.of[i].limit;
        if (!(change->request_parts & RESOURCE_BIT(i)))
            to->request = now.of[i].request;
        else if (to->request == ALLOWANCE_UNSET)
            to->request = says.of[i].request;
        if (to->limit == says.of[i].limit && to->request == says.of[i].request)
            to->limit = to->request = ALLOWANCE_UNSET;
    }
}

static uint32_t check_shares(const struct allowance *limits, struct error *why)
{
    struct allowance_excess excess;
    char request[UNITS_TEXT], limit[UNITS_TEXT];
    if (!allowance_exceeds(limits, &excess))
        return 0;
    const char *name = allowance_resource(excess.resource)->name;
    return error_set(why, MESSAGE(total_request_over_limit), name,
                     dialect_format(excess.request, request), dialect_format(excess.limit, limit));
}

uint32_t owner_total_set(struct supervisor *supervisor, const struct account_owner *owner,
                         const struct total_change *change, const struct reload_asker *asker,
                         bool *over, struct error *why)
{
    struct total_overrides overrides;
    const struct server *server = &supervisor->server;
    struct allowance limits = change->limits;
    *over = true;
    if (supervisor->reload)
        return error_set(why, MESSAGE(reload_first));
    if ((owner->kind != TOTAL_CGROUP && owner->id == CONFIG_ID_UNKNOWN) ||
        (owner->kind == TOTAL_USER && !identity_uid_is_seen(owner->id)))
        return owner->kind == TOTAL_GROUP
                   ? error_set(why, MESSAGE(total_of_unidentified_group), owner->id)
                   : error_set(why, MESSAGE(total_of_unidentified), owner->id);
    complete_shares(server, owner, change, &limits);
    if (check_shares(&limits, why))
        return why->number;
    allowance_attribute(&limits, (struct allowance_source){ALLOWANCE_BY_ADMIN, 0});
    struct pending_total *pending = malloc(sizeof *pending);
    int result = pending
                     ? total_override_with(&overrides, &server->total_overrides, server->config,
                                           owner, change->parts | change->request_parts, &limits)
                     : -ENOMEM;
    if (result < 0) {
        free(pending);
        return result == -ENOSPC ? error_set(why, MESSAGE(totals_max), TOTAL_OVERRIDES_MAX)
                                 : error_set(why, MESSAGE(server_no_memory));
    }
    *pending = (struct pending_total){.supervisor = supervisor,
                                      .owner = *owner,
                                      .limits = change->parts,
                                      .requests = change->request_parts,
                                      .asker = *asker};
    if (owner->cgroup) /* which the caller may give up before the change is over */
        pending->owner.cgroup = strcpy(pending->cgroup, owner->cgroup);
    snprintf(pending->by, sizeof pending->by, "%s", asker->by);
    pending->asker.by = pending->by;
    const struct reload_asker own = {pending->by, pending_ended, pending};
    uint32_t error = reload_totals(supervisor, &overrides, &own, over, why);
    if (!error && *over)
        log_set(pending);
    if (error || *over)
        free(pending);
    return error;
}
