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

uint64_t session_quota_total_memory(const struct device *device, const struct allowance *limits)
{
    struct allowance total = *limits;
    allowance_resolve(&total, RESOURCE_MEMORY, device->info.memory);
    return total.memory.limit;
}

static uint64_t limit_of(const struct config *config, const struct server *server,
                         const struct total *total)
{
    struct allowance limits;
    total_override_limits(&server->total_overrides, config, total->kind, total->id, &limits);
    if (total->device == TOTAL_HOST)
        return limits.host_memory.limit;
    return session_quota_total_memory(&server->devices[total->device], &limits);
}

void session_quota_limit_totals(struct server *server, const struct config *config)
{
    for (struct total *total = server->totals.first; total; total = total->next)
        total->quota.limit = limit_of(config, server, total);
}

static int total_join_limited(struct session *session, const struct config *config,
                              enum total_kind kind, uint32_t id, struct session_totals *totals)
{
    struct totals *all = &session->server->totals;
    struct allowance limits;
    int result = 0;
    total_override_limits(&session->server->total_overrides, config, kind, id, &limits);
    if (allowance_has(&limits, RESOURCE_MEMORY, ALLOWANCE_LIMIT))
        result = total_join(all, kind, id, session->device->index, &totals->memory);
    if (result == 0 && limits.host_memory.limit != ALLOWANCE_UNSET)
        result = total_join(all, kind, id, TOTAL_HOST, &totals->host);
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
    total_members_leave(&server->totals, &totals->memory);
    total_members_leave(&server->totals, &totals->host);
}

void session_quota_swap_totals(struct session *session, struct session_totals *totals)
{
    struct session_totals old = session->totals;
    total_members_exit(old.memory, &session->memory);
    total_members_exit(old.host, &session->host);
    session->totals = *totals;
    total_members_enter(session->totals.memory, &session->memory);
    total_members_enter(session->totals.host, &session->host);
    *totals = old;
}

/* ---- guarantees ---- */

static uint64_t guaranteed_to_others(const struct session *session, bool host)
{
    uint64_t sum = 0;
    const struct session *s;
    LIST_FOR_EACH (s, &session->server->session_list, link) {
        if (s == session || !s->device || (!host && s->device != session->device))
            continue;
        sum += host ? s->host.guarantee : s->memory.guarantee;
    }
    return sum;
}

/* The culprit is one of the client's totals, or the account of all clients of the device or
 * server. */
static uint32_t guarantee_refuse(const struct session *session, const struct quota *culprit,
                                 bool host, uint64_t request, struct error *why)
{
    char asked[UNITS_TEXT], has[UNITS_TEXT], promised[UNITS_TEXT], used[UNITS_TEXT];
    const struct quota *own = host ? &session->host : &session->memory;
    uint64_t holds = max(own->used, own->guarantee);
    const char *what = host ? "pinned host memory" : "device memory";
    units_format_bytes(request, asked);
    units_format_bytes(culprit->limit, has);
    if (culprit != &session->device->memory && culprit != &session->server->host)
        return error_set(why, MESSAGE(guarantee_total), asked, what, culprit->name, has,
                         units_format_bytes(culprit->used - holds, used));
    uint64_t others = guaranteed_to_others(session, host);
    units_format_bytes(others, promised);
    if (request > culprit->limit || others > culprit->limit - request) {
        char sum[UNITS_TEXT];
        return error_set(why, MESSAGE(guarantee_never), asked, what, promised,
                         units_format_bytes(others + request, sum), has);
    }
    /* The part that the others use beyond their guarantees. */
    units_format_bytes(culprit->used - holds - others, used);
    return error_set(why, MESSAGE(guarantee_not_now), asked, what, has, promised, used);
}

uint32_t session_quota_guarantee(struct session *session, uint64_t memory, uint64_t host,
                                 struct error *why)
{
    const struct quota *culprit = NULL;
    uint64_t before = session->memory.guarantee;
    if (quota_guarantee(&session->memory, memory, &culprit))
        return guarantee_refuse(session, culprit, false, memory, why);
    if (!quota_guarantee(&session->host, host, &culprit))
        return 0;
    quota_restore(&session->memory, before);
    return guarantee_refuse(session, culprit, true, host, why);
}

bool session_quota_restore(struct session *session, uint64_t memory, uint64_t host)
{
    int lacks = quota_restore(&session->memory, memory);
    return (quota_restore(&session->host, host) | lacks) == 0;
}

/* ---- life ---- */

uint32_t session_quota_open(struct session *session, struct error *why)
{
    struct server *server = session->server;
    const struct allowance *grant = &session->grant.allowance;
    struct session_totals totals;
    /* A quarter, so that one client can't take all of it. */
    uint64_t images = server->images.limit / 4;
    quota_open(&session->memory, "device memory limit of this client", grant->memory.limit,
               &session->device->memory);
    quota_open(&session->host, "pinned host memory limit of this client", grant->host_memory.limit,
               &server->host);
    quota_open(&session->fds, "share of file descriptors of this client", server->budget.client_max,
               &server->fds);
    quota_open(&session->images, "module image memory of this client", images, &server->images);
    if (session_quota_find_totals(session, server->config, &totals) < 0) {
        return error_set(why, MESSAGE(client_record_no_memory));
    }
    session_quota_limit_totals(server, server->config);
    session_quota_swap_totals(session, &totals);
    return session_quota_guarantee(session, grant->memory.request, grant->host_memory.request, why);
}

void session_quota_close(struct session *session)
{
    struct session_totals totals = {0};
    session_quota_swap_totals(session, &totals);
    session_quota_drop_totals(session->server, &totals);
    quota_close(&session->memory);
    quota_close(&session->host);
    quota_close(&session->fds);
    quota_close(&session->images);
}

/* ---- in words ---- */

enum { REMEDY_BYTES = 320 }; /* with the path of a configuration, cut */

/* Names the setting to change for a higher limit. A client's source is its own word, of which
 * nothing but a row of our table gets into the sentence. */
static const char *remedy_of(const struct session *session, bool host, char text[REMEDY_BYTES])
{
    const struct quota *own = host ? &session->host : &session->memory;
    const struct quota *whole = host ? &session->server->host : &session->device->memory;
    const struct config *config = session->server->config;
    enum resource resource = host ? RESOURCE_HOST_MEMORY : RESOURCE_MEMORY;
    struct allowance_source source =
        allowance_source(&session->grant.allowance, resource, ALLOWANCE_LIMIT);
    const char *variable =
        allowance_variable(resource, ALLOWANCE_LIMIT, (enum proto_source)source.detail);
    switch (source.origin) {
    case ALLOWANCE_BY_CLIENT:
        snprintf(text, REMEDY_BYTES, MESSAGE_TEXT(limit_by_client),
                 variable                                ? variable
                 : source.detail == PROTO_SOURCE_OPTIONS ? "an option of the program"
                                                         : "the client");
        return text;
    case ALLOWANCE_BY_SELF:
        snprintf(text, REMEDY_BYTES, MESSAGE_TEXT(limit_by_server),
                 variable ? variable : "an option");
        return text;
    case ALLOWANCE_BY_FILE:
        snprintf(text, REMEDY_BYTES, MESSAGE_TEXT(limit_by_file),
                 config ? config->file : "its configuration", source.detail);
        return text;
    case ALLOWANCE_BY_ADMIN:
        return MESSAGE_TEXT(limit_by_admin);
    case ALLOWANCE_BY_NOBODY:
        break;
    }
    return own->limit < whole->limit ? MESSAGE_TEXT(limit_by_default) : MESSAGE_TEXT(limit_whole);
}

uint32_t session_quota_refuse(const struct session *session, const struct quota *culprit,
                              uint64_t asked, struct error *why)
{
    char used[UNITS_TEXT], limit[UNITS_TEXT], more[UNITS_TEXT], text[REMEDY_BYTES];
    const char *holds = MESSAGE_TEXT(memory_in_use_or_guaranteed);
    const char *remedy = MESSAGE_TEXT(memory_of_others);
    if (culprit == &session->memory || culprit == &session->host) {
        holds = MESSAGE_TEXT(memory_in_use);
        remedy = remedy_of(session, culprit == &session->host, text);
    }
    return error_set(
        why, MESSAGE(memory_over_limit), culprit->name, units_format_bytes(culprit->used, used),
        units_format_bytes(culprit->limit, limit), holds, units_format_bytes(asked, more), remedy);
}
