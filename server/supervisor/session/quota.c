/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/quota.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/limits/limits.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/rules.h"
#include "server/supervisor/session/server.h"

/* ---- totals ---- */

uint64_t session_quota_total_limit(const struct allowance *limits, enum resource resource,
                                   const struct device *device)
{
    struct allowance total = *limits;
    if (device)
        allowance_resolve(&total, resource, device->info.memory);
    return total.of[resource].limit;
}

static void total_limit(struct total *total, const struct config *config,
                        const struct server *server)
{
    const struct account_owner owner = {.kind = total->kind, .id = total->id};
    struct allowance limits;
    total_override_limits(&server->total_overrides, config, &owner, &limits);
    if (total->device != TOTAL_OF_SERVER)
        allowance_resolve(&limits, total->resource, server->devices[total->device].info.memory);
    total->quota.limit = limits.of[total->resource].limit;
    total->limit_from = allowance_source(&limits, total->resource, ALLOWANCE_LIMIT);
}

void session_quota_limit_totals(struct server *server, const struct config *config)
{
    for (struct total *total = server->totals.first; total; total = total->next)
        total_limit(total, config, server);
}

static int total_join_limited(struct session *session, const struct config *config,
                              enum total_kind kind, uint32_t id, struct session_totals *totals)
{
    struct totals *all = &session->server->totals;
    const struct account_owner owner = {.kind = kind, .id = id};
    struct allowance limits;
    int result = 0;
    total_override_limits(&session->server->total_overrides, config, &owner, &limits);
    QUOTA_FOR_EACH (i) {
        uint32_t device =
            allowance_resource(i)->of_device ? session->device->index : TOTAL_OF_SERVER;
        if (result == 0 && allowance_has(&limits, i, ALLOWANCE_LIMIT))
            result = total_join(all, kind, id, i, device, &totals->of[i]);
    }
    return result;
}

int session_quota_find_totals(struct session *session, const struct config *config,
                              struct session_totals *totals)
{
    const struct identity *identity = &session->identity;
    *totals = (struct session_totals){0};
    uint32_t uid = identity->known ? session->uid : CONFIG_ID_UNKNOWN;
    int result = total_join_limited(session, config, TOTAL_USER, uid, totals);
    for (size_t i = 0; result == 0 && identity->gids && i < identity->gid_count; i++)
        result = total_join_limited(session, config, TOTAL_GROUP, identity->gids[i], totals);
    if (result == 0 && !identity->gids)
        result = total_join_limited(session, config, TOTAL_GROUP, CONFIG_ID_UNKNOWN, totals);
    if (result < 0)
        session_quota_drop_totals(session->server, totals);
    return result;
}

void session_quota_drop_totals(struct server *server, struct session_totals *totals)
{
    QUOTA_FOR_EACH (i)
        total_members_leave(&server->totals, &totals->of[i]);
}

void session_quota_swap_totals(struct session *session, struct session_totals *totals)
{
    struct session_totals old = session->totals;
    QUOTA_FOR_EACH (i) {
        total_members_exit(old.of[i], &session->quotas[i]);
        total_members_enter(totals->of[i], &session->quotas[i]);
    }
    session->totals = *totals;
    *totals = old;
}

/* ---- sources in words ---- */

enum { SOURCE_BYTES = 256 }; /* with the path of a configuration, cut */

/* Names what set a value. A client's source is its own word, of which nothing but a row of our
 * table gets into the sentence. Returns text, or a static one. */
static const char *name_source(const struct session *session, enum resource resource,
                               enum allowance_bound bound, struct allowance_source source,
                               char text[SOURCE_BYTES])
{
    const struct config *config = session->server->config;
    const char *variable = allowance_variable(resource, bound, (enum proto_source)source.detail);
    switch (source.origin) {
    case ALLOWANCE_BY_CLIENT:
        return variable                                ? variable
               : source.detail == PROTO_SOURCE_OPTIONS ? MESSAGE_TEXT(source_options)
                                                       : MESSAGE_TEXT(source_client);
    case ALLOWANCE_BY_SELF:
        if (!variable)
            return MESSAGE_TEXT(source_server_options);
        snprintf(text, SOURCE_BYTES, MESSAGE_TEXT(source_server), variable);
        return text;
    case ALLOWANCE_BY_FILE:
        snprintf(text, SOURCE_BYTES, MESSAGE_TEXT(source_file),
                 config ? config->file : session->server->settings->config, source.detail);
        return text;
    case ALLOWANCE_BY_ADMIN:
        return MESSAGE_TEXT(source_admin);
    case ALLOWANCE_BY_NOBODY:
        break;
    }
    return MESSAGE_TEXT(source_unknown);
}

static const char *name_source_of_total(const struct session *session, const struct total *total,
                                        char text[SOURCE_BYTES])
{
    return name_source(session, total->resource, ALLOWANCE_LIMIT, total->limit_from, text);
}

/* ---- guarantees ---- */

/* The quota of all clients that a client's quota stands under. */
static struct quota *whole_of(const struct session *session, enum resource resource)
{
    return allowance_resource(resource)->of_device ? &session->device->quotas[resource]
                                                   : &session->server->quotas[resource];
}

static uint64_t guaranteed_to_others(const struct session *session, enum resource resource)
{
    uint64_t sum = 0;
    const struct session *s;
    LIST_FOR_EACH (s, &session->server->session_list, link)
        if (s != session && s->device && whole_of(s, resource) == whole_of(session, resource))
            sum += s->quotas[resource].guarantee;
    return sum;
}

/* The culprit is one of the client's totals, or the quota of all clients of the device or
 * server. */
static uint32_t guarantee_refuse(const struct session *session, const struct quota *culprit,
                                 enum resource resource, const struct allowance *wanted,
                                 struct error *why)
{
    uint64_t request = wanted->of[resource].request;
    char from_text[SOURCE_BYTES], total_text[SOURCE_BYTES];
    const char *from =
        name_source(session, resource, ALLOWANCE_REQUEST,
                    allowance_source(wanted, resource, ALLOWANCE_REQUEST), from_text);
    char asked[UNITS_TEXT], has[UNITS_TEXT], promised[UNITS_TEXT], used[UNITS_TEXT];
    const struct quota *own = &session->quotas[resource];
    uint64_t holds = max(own->used, own->guarantee);
    const char *what = allowance_resource(resource)->phrase;
    units_format_bytes(request, asked);
    units_format_bytes(culprit->limit, has);
    if (culprit != whole_of(session, resource))
        return error_set(
            why, MESSAGE(guarantee_total), asked, what, culprit->name, has,
            units_format_bytes(culprit->used - holds, used), from,
            name_source_of_total(session, container_of(culprit, struct total, quota), total_text));
    uint64_t others = guaranteed_to_others(session, resource);
    units_format_bytes(others, promised);
    if (request > culprit->limit || others > culprit->limit - request) {
        char sum[UNITS_TEXT];
        return error_set(why, MESSAGE(guarantee_never), asked, what, promised,
                         units_format_bytes(others + request, sum), has, from);
    }
    /* The part that the others use beyond their guarantees. */
    units_format_bytes(culprit->used - holds - others, used);
    return error_set(why, MESSAGE(guarantee_not_now), asked, what, has, promised, used, from);
}

struct allowance session_quota_guarantees(const struct session *session)
{
    struct allowance now = allowance_none;
    QUOTA_FOR_EACH (i) {
        now.of[i].request = session->quotas[i].guarantee;
        now.of_from[i].request = allowance_source(&session->grant.allowance, i, ALLOWANCE_REQUEST);
    }
    return now;
}

uint32_t session_quota_guarantee(struct session *session, const struct allowance *wanted,
                                 struct error *why)
{
    const struct allowance before = session_quota_guarantees(session);
    QUOTA_FOR_EACH (i) {
        const struct quota *culprit = NULL;
        if (!quota_guarantee(&session->quotas[i], wanted->of[i].request, &culprit))
            continue;
        session_quota_restore(session, &before);
        return guarantee_refuse(session, culprit, i, wanted, why);
    }
    return 0;
}

bool session_quota_restore(struct session *session, const struct allowance *before)
{
    bool whole = true;
    QUOTA_FOR_EACH (i)
        whole &= quota_restore(&session->quotas[i], before->of[i].request) == 0;
    return whole;
}

/* ---- life ---- */

uint32_t session_quota_open(struct session *session, struct error *why)
{
    struct server *server = session->server;
    const struct allowance *grant = &session->grant.allowance;
    struct session_totals totals;
    /* A quarter, so that one client can't take all of it. */
    uint64_t images = server->images.limit / 4;
    QUOTA_FOR_EACH (i)
        quota_open(&session->quotas[i], allowance_resource(i)->quota, grant->of[i].limit,
                   whole_of(session, i));
    session->quotas[RESOURCE_MEMORY].level = &session->bill.memory;
    session->quotas[RESOURCE_HOST_MEMORY].level = &session->bill.host_memory;
    session->user_share =
        user_share_join(&server->user_shares, session->uid, &server->fds, &server->images);
    if (!session->user_share || job_client_open(&session->jobs, &server->jobs, session->uid) < 0)
        return error_set(why, MESSAGE(client_record_no_memory));
    quota_open(&session->fds, "share of file descriptors of this client", server->budget.client_max,
               &session->user_share->fds);
    quota_open(&session->images, "module image memory of this client", images,
               &session->user_share->images);
    if (session_quota_find_totals(session, server->config, &totals) < 0) {
        return error_set(why, MESSAGE(client_record_no_memory));
    }
    session_quota_limit_totals(server, server->config);
    session_quota_swap_totals(session, &totals);
    return session_quota_guarantee(session, grant, why);
}

void session_quota_close(struct session *session)
{
    struct session_totals totals = {0};
    session_quota_swap_totals(session, &totals);
    session_quota_drop_totals(session->server, &totals);
    QUOTA_FOR_EACH (i)
        quota_close(&session->quotas[i]);
    quota_close(&session->fds);
    quota_close(&session->images);
    job_client_close(&session->jobs);
    user_share_leave(&session->server->user_shares, session->user_share);
    session->user_share = NULL;
}

uint64_t session_quota_whole(const struct session *session, enum resource resource)
{
    return whole_of(session, resource)->limit;
}

/* ---- refusals ---- */

/* The client's quota, its user's or the server's. */
static bool counts_fds(const struct session *session, const struct quota *culprit)
{
    const struct quota *fds = &session->fds;
    while (fds && fds != culprit)
        fds = fds->parent;
    return fds != NULL;
}

enum { ASKED_TEXT = 2 * UNITS_TEXT + 32 };

/* Device memory comes in the driver's granules: with a limit between two of them, the arithmetic
 * alone would show that there is room. */
static const char *format_asked(const struct session *session, const struct quota *culprit,
                                uint64_t asked, char text[ASKED_TEXT])
{
    char bytes[UNITS_TEXT], step[UNITS_TEXT];
    const struct quota *memory = &session->quotas[RESOURCE_MEMORY];
    while (memory && memory != culprit)
        memory = memory->parent;
    units_format_bytes(asked, bytes);
    if (memory && culprit->used + asked <= culprit->limit)
        snprintf(text, ASKED_TEXT, "%s (in steps of %s)", bytes,
                 units_format_bytes(session->heap.granularity, step));
    else
        strcpy(text, bytes);
    return text;
}

static uint32_t refuse_own(const struct session *session, enum resource resource, uint64_t asked,
                           struct error *why)
{
    const struct quota *own = &session->quotas[resource];
    char used[UNITS_TEXT], limit[UNITS_TEXT], more[ASKED_TEXT], text[SOURCE_BYTES];
    const struct allowance_source source =
        allowance_source(&session->grant.allowance, resource, ALLOWANCE_LIMIT);
    units_format_bytes(own->used, used);
    units_format_bytes(own->limit, limit);
    format_asked(session, own, asked, more);
    if (source.origin == ALLOWANCE_BY_NOBODY)
        return own->limit < whole_of(session, resource)->limit
                   ? error_set(why, MESSAGE(limit_by_default), own->name, used, limit, more)
                   : error_set(why, MESSAGE(limit_whole), own->name, used, limit, more);
    const char *from = name_source(session, resource, ALLOWANCE_LIMIT, source, text);
    return source.origin == ALLOWANCE_BY_CLIENT
               ? error_set(why, MESSAGE(limit_by_client), own->name, used, limit, more, from)
               : error_set(why, MESSAGE(limit_by_administrator), own->name, used, limit, more,
                           from);
}

static uint32_t refuse_total(const struct session *session, const struct quota *culprit,
                             uint64_t asked, struct error *why)
{
    char used[UNITS_TEXT], limit[UNITS_TEXT], more[ASKED_TEXT], text[SOURCE_BYTES];
    const struct total *total = container_of(culprit, struct total, quota);
    return error_set(
        why, MESSAGE(memory_over_total), culprit->name, units_format_bytes(culprit->used, used),
        units_format_bytes(culprit->limit, limit), format_asked(session, culprit, asked, more),
        name_source_of_total(session, total, text));
}

/* The pool has memory that nobody uses, and gives it back only while no kernel runs. */
static uint32_t refuse_pooled(const struct session *session, const struct quota *all,
                              uint64_t asked, struct error *why)
{
    char used[UNITS_TEXT], limit[UNITS_TEXT], kept[UNITS_TEXT], more[UNITS_TEXT];
    return error_set(why, MESSAGE(memory_pooled), all->name, units_format_bytes(all->used, used),
                     units_format_bytes(all->limit, limit),
                     units_format_bytes(session->server->pinned.bytes, kept),
                     units_format_bytes(asked, more));
}

uint32_t session_quota_refuse(const struct session *session, const struct quota *culprit,
                              uint64_t asked, struct error *why)
{
    char used[UNITS_TEXT], limit[UNITS_TEXT], more[ASKED_TEXT];
    QUOTA_FOR_EACH (i) {
        if (culprit == &session->quotas[i])
            return refuse_own(session, i, asked, why);
        if (culprit == whole_of(session, i) && i == RESOURCE_HOST_MEMORY &&
            session->server->pinned.bytes)
            return refuse_pooled(session, culprit, asked, why);
        if (culprit == whole_of(session, i))
            return error_set(why, MESSAGE(memory_over_limit), culprit->name,
                             units_format_bytes(culprit->used, used),
                             units_format_bytes(culprit->limit, limit),
                             format_asked(session, culprit, asked, more));
    }
    return refuse_total(session, culprit, asked, why);
}

uint32_t session_quota_refuse_room(const struct session *session, enum resource resource,
                                   const struct quota *culprit, uint64_t asked, struct error *why)
{
    const bool of_device = allowance_resource(resource)->of_device;
    char bytes[UNITS_TEXT];
    if (!culprit)
        return of_device
                   ? error_set(why, MESSAGE(window_fragmented))
                   : error_set(why, MESSAGE(host_window_full), units_format_bytes(asked, bytes));
    if (!counts_fds(session, culprit))
        return session_quota_refuse(session, culprit, asked, why);
    const unsigned long long used = culprit->used, limit = culprit->limit;
    return of_device ? error_set(why, MESSAGE(memory_descriptors), culprit->name, used, limit)
                     : error_set(why, MESSAGE(host_descriptors), culprit->name, used, limit);
}
