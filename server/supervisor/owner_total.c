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
#include "server/supervisor/session/quota.h"
#include "server/supervisor/supervisor_private.h"

static enum total_kind kind_of(const struct account_owner *owner)
{
    return owner->group ? TOTAL_GROUP : TOTAL_USER;
}

static bool is_seen(const struct session *session, const struct account_owner *owner)
{
    return owner->group ? session->identity.gids != NULL : session->identity.known;
}

static bool has_accounts(const struct session *session)
{
    return session->accounts[RESOURCE_MEMORY].parent != NULL;
}

/* Whether a client counts in a total. Clients that can't be identified have a total of their
 * own. */
static bool client_counts(const struct session *session, const struct account_owner *owner)
{
    const struct identity *identity = &session->identity;
    if (!has_accounts(session))
        return false;
    if (!is_seen(session, owner) || owner->id == CONFIG_ID_UNKNOWN)
        return !is_seen(session, owner) && owner->id == CONFIG_ID_UNKNOWN;
    if (!owner->group)
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

void owner_total_view(const struct supervisor *supervisor, const struct account_owner *owner,
                      enum resource resource, uint32_t device, struct total_view *view)
{
    struct allowance limits;
    const struct server *server = &supervisor->server;
    bool of_device = allowance_resource(resource)->of_device;
    unsigned set =
        total_override_limits(&supervisor->server.total_overrides, supervisor->server.config,
                              kind_of(owner), owner->id, &limits);
    *view =
        (struct total_view){.set = (set & RESOURCE_BIT(resource)) != 0,
                            .limit = session_quota_total_limit(
                                &limits, resource, of_device ? &server->devices[device] : NULL)};
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (client_counts(session, owner) && (!of_device || session->device->index == device))
            view->used += quota_claim(&session->accounts[resource]);
}

/* ---- setting ---- */

struct place {
    struct session *session;
    struct session_totals totals;
};

/* Finds the totals for each client that the change concerns. Returns 0, or -ENOMEM and all of them
 * have been given back. */
static int find_places(struct supervisor *supervisor, const struct account_owner *owner,
                       struct place *places, size_t *count)
{
    int result = 0;
    *count = 0;
    struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link) {
        /* A client that can't be identified is bound by the strictest of all totals. */
        if (!client_counts(session, owner) && (!has_accounts(session) || is_seen(session, owner)))
            continue;
        places[*count].session = session;
        result =
            session_quota_find_totals(session, supervisor->server.config, &places[*count].totals);
        if (result < 0)
            break;
        ++*count;
    }
    for (size_t i = 0; result < 0 && i < *count; i++)
        session_quota_drop_totals(&supervisor->server, &places[i].totals);
    return result;
}

static int put_in_force(struct supervisor *supervisor, const struct account_owner *owner)
{
    size_t count;
    struct place *places = calloc((size_t)supervisor->server.sessions + 1, sizeof *places);
    int result = places ? find_places(supervisor, owner, places, &count) : -ENOMEM;
    if (result == 0) {
        for (size_t i = 0; i < count; i++)
            session_quota_swap_totals(places[i].session, &places[i].totals);
        for (size_t i = 0; i < count; i++)
            session_quota_drop_totals(&supervisor->server, &places[i].totals);
        session_quota_limit_totals(&supervisor->server, supervisor->server.config);
    }
    free(places);
    return result;
}

static void log_set(const struct supervisor *supervisor, const struct account_owner *owner,
                    const char *by)
{
    struct allowance limits;
    const char *kind = owner->group ? "group" : "user";
    total_override_limits(&supervisor->server.total_overrides, supervisor->server.config,
                          kind_of(owner), owner->id, &limits);
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *resource = allowance_resource(i);
        uint64_t limit = limits.of[i].limit, part = limits.part[i].limit;
        char text[UNITS_TEXT];
        if (!resource->has_total)
            continue;
        if (part != ALLOWANCE_UNSET)
            log_notice(MESSAGE_TEXT(log_total_set_part), kind, owner->id, by, resource->phrase,
                       units_format_percentage((uint32_t)part, text));
        else if (limit != ALLOWANCE_UNSET)
            log_notice(MESSAGE_TEXT(log_total_set), kind, owner->id, by, resource->phrase,
                       units_format_bytes(limit, text));
        else
            log_notice(MESSAGE_TEXT(log_total_lifted), kind, owner->id, by, resource->phrase);
    }
}

uint32_t owner_total_set(struct supervisor *supervisor, const struct account_owner *owner,
                         const struct total_change *change, const char *by, struct error *why)
{
    struct total_overrides before = supervisor->server.total_overrides;
    struct allowance limits = change->limits;
    if (supervisor->reload)
        return error_set(why, MESSAGE(reload_first));
    if (owner->id == CONFIG_ID_UNKNOWN || (!owner->group && !identity_uid_is_seen(owner->id)))
        return owner->group ? error_set(why, MESSAGE(total_of_unidentified_group), owner->id)
                            : error_set(why, MESSAGE(total_of_unidentified), owner->id);
    allowance_attribute(&limits, (struct allowance_source){ALLOWANCE_BY_ADMIN, 0});
    int result =
        total_override_with(&supervisor->server.total_overrides, &before, supervisor->server.config,
                            kind_of(owner), owner->id, change->parts, &limits);
    if (result == 0)
        result = put_in_force(supervisor, owner);
    if (result == 0) {
        total_override_free(&before);
        log_set(supervisor, owner, by);
        return 0;
    }
    if (supervisor->server.total_overrides.items != before.items)
        total_override_free(&supervisor->server.total_overrides);
    supervisor->server.total_overrides = before;
    return result == -ENOSPC ? error_set(why, MESSAGE(totals_max), TOTAL_OVERRIDES_MAX)
                             : error_set(why, MESSAGE(server_no_memory));
}
