/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The configuration that is in force, and its replacement. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "common/log.h"
#include "server/supervisor/config.h"
#include "server/supervisor/config_rules.h"
#include "server/supervisor/session.h"
#include "server/supervisor/supervisor_private.h"

static int load(const struct supervisor *supervisor, struct config **config, char *text,
                size_t text_bytes)
{
    const struct settings *settings = supervisor->settings;
    *config = NULL;
    if (!settings->config[0])
        return 0;
    int result = config_load(config, settings->config, text, text_bytes);
    /* A file that nobody asked for may be missing, but not vanish: its limits would with it. */
    if (result == -ENOENT && !settings->config_named && !supervisor->config)
        return 0;
    if (result == 0)
        result =
            config_resolve(*config, supervisor->uuids, supervisor->device_count, text, text_bytes);
    return result;
}

static int grant_under(const struct config *config, const struct session *session,
                       const struct device *device, const struct proto_attach *wish,
                       struct grant *grant)
{
    struct admission admission = device->admission;
    struct config_limits limits = config_limits_none;
    const struct identity *identity = &session->identity;
    struct config_who who = {.identified = identity->known,
                             .uid = session->uid,
                             .gids = identity->gids,
                             .gid_count = identity->gid_count,
                             .cgroup = identity->cgroup,
                             .name = wish->name,
                             .profile = wish->profile};
    if (!config && *wish->profile)
        return -ENOENT;
    int result = config ? config_choose(config, device->index, &who, &limits) : 0;
    if (result < 0)
        return result;
    config_limits_tighten(&admission.limits, &limits);
    *grant = admission_grant(&admission, &device->info, wish);
    return 0;
}

int session_grant(const struct session *session, const struct device *device,
                  const struct proto_attach *wish, struct grant *grant)
{
    return grant_under(session->supervisor->config, session, device, wish, grant);
}

/* ---- clients that are attached ---- */

static void changed(void *context, uint32_t client, uint32_t error, const char *text)
{
    (void)context;
    if (error)
        log_warning("client %u keeps its share of before the new configuration: %s", client, text);
}

/* Only what the two files say differently: what an administrator has set by hand meanwhile stays
 * otherwise. The window of addresses was fixed at attach. */
static void change(struct session *session, const struct grant *from, const struct grant *to)
{
    struct supervisor_change change = {
        .thread_percentage =
            to->thread_percentage == from->thread_percentage ? 0 : to->thread_percentage,
        .thread_request =
            to->thread_request == from->thread_request ? UINT32_MAX : to->thread_request,
        .time_request = to->time_request == from->time_request ? UINT32_MAX : to->time_request,
        .time_limit = to->time_limit == from->time_limit ? 0 : to->time_limit,
        .priority = to->priority == from->priority ? UINT32_MAX : to->priority,
        .memory_limit = to->memory_limit == from->memory_limit
                            ? PROTO_UNSET
                            : limits_tighter(to->memory_limit, session->window.bytes),
        .memory_request =
            to->memory_request == from->memory_request ? PROTO_UNSET : to->memory_request,
        .host_request = to->host_request == from->host_request ? PROTO_UNSET : to->host_request,
        .host_limit = to->host_limit == from->host_limit
                          ? PROTO_UNSET
                          : limits_tighter(to->host_limit, session->window.bytes),
    };
    if (supervisor_change_empty(&change))
        return;
    int result = session_limits_set(session, &change, "the configuration", changed, NULL);
    if (result < 0)
        changed(NULL, session->number, PROTO_ERROR_SERVER_RESOURCES, strerror(-result));
}

static void change_clients(struct supervisor *supervisor, const struct config *before)
{
    for (struct session *session = supervisor->first, *next; session; session = next) {
        struct grant from, to;
        next = session->next;
        if (session->state != SESSION_ATTACHED ||
            grant_under(before, session, session->device, &session->asked, &from) < 0)
            continue;
        if (grant_under(supervisor->config, session, session->device, &session->asked, &to) < 0)
            log_warning("client %u keeps its limits: its profile \"%s\" is no longer there",
                        session->number, session->asked.profile);
        else
            change(session, &from, &to);
    }
}

int supervisor_reload(struct supervisor *supervisor, char *text, size_t text_bytes)
{
    struct config *config, *before = supervisor->config;
    int result = load(supervisor, &config, text, text_bytes);
    if (result < 0) {
        config_free(config);
        return result;
    }
    supervisor->config = config;
    if (config)
        log_notice("configuration %s: %zu profiles, %zu rules", config->file, config->profile_count,
                   config->rule_count);
    change_clients(supervisor, before);
    config_free(before);
    return 0;
}

void supervisor_config_view(const struct supervisor *supervisor,
                            struct supervisor_config_view *view)
{
    const struct config *config = supervisor->config;
    *view = (struct supervisor_config_view){0};
    if (config)
        *view = (struct supervisor_config_view){
            .file = config->file, .profiles = config->profile_count, .rules = config->rule_count};
}
