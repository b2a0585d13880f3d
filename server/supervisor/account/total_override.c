/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/total_override.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/supervisor/config/rules.h"

static void file_says(const struct config *config, enum total_kind kind, uint32_t id,
                      struct config_limits *limits)
{
    *limits = config_limits_none;
    if (config && kind == TOTAL_USER)
        config_rules_total(config->users, config->user_count, id, limits);
    else if (config)
        config_rules_total(config->groups, config->group_count, id, limits);
}

static void overrides_copy(struct config_limits *to, const struct config_limits *from,
                           unsigned parts)
{
    if (parts & TOTAL_MEMORY) {
        to->memory = from->memory;
        to->memory_share = from->memory_share;
    }
    if (parts & TOTAL_HOST_MEMORY)
        to->host_memory = from->host_memory;
}

/* The parts that are limits at all. */
static unsigned is_limited(const struct config_limits *limits)
{
    unsigned memory = limits->memory != PROTO_UNSET || limits->memory_share ? TOTAL_MEMORY : 0;
    unsigned host = limits->host_memory != PROTO_UNSET ? TOTAL_HOST_MEMORY : 0;
    return memory | host;
}

/* The parts of a setting about which the configuration says what it said then. */
static unsigned override_holds(const struct total_override *setting,
                               const struct config_limits *says)
{
    const struct config_limits *said = &setting->said;
    unsigned same = 0;
    if (said->memory == says->memory && said->memory_share == says->memory_share)
        same |= TOTAL_MEMORY;
    if (said->host_memory == says->host_memory)
        same |= TOTAL_HOST_MEMORY;
    return setting->parts & same;
}

static struct total_override *override_find(const struct total_overrides *settings,
                                            enum total_kind kind, uint32_t id)
{
    for (size_t i = 0; i < settings->count; i++)
        if (settings->items[i].kind == kind && settings->items[i].id == id)
            return &settings->items[i];
    return NULL;
}

static unsigned tighten_by_all(const struct total_overrides *settings, const struct config *config,
                               enum total_kind kind, struct config_limits *limits)
{
    unsigned parts = 0;
    for (size_t i = 0; i < settings->count; i++) {
        const struct total_override *setting = &settings->items[i];
        struct config_limits says, set = config_limits_none;
        if (setting->kind != kind)
            continue;
        file_says(config, kind, setting->id, &says);
        overrides_copy(&set, &setting->limits, override_holds(setting, &says));
        config_limits_tighten(limits, &set);
        parts |= override_holds(setting, &says);
    }
    return parts;
}

unsigned total_overrides_limits(const struct total_overrides *settings, const struct config *config,
                                enum total_kind kind, uint32_t id, struct config_limits *limits)
{
    file_says(config, kind, id, limits);
    if (id == CONFIG_ID_UNKNOWN)
        return tighten_by_all(settings, config, kind, limits);
    const struct total_override *setting = override_find(settings, kind, id);
    unsigned parts = setting ? override_holds(setting, limits) : 0;
    if (parts)
        overrides_copy(limits, &setting->limits, parts);
    return parts;
}

int total_overrides_with(struct total_overrides *to, const struct total_overrides *of,
                         const struct config *config, enum total_kind kind, uint32_t id,
                         unsigned parts, const struct config_limits *limits)
{
    struct config_limits says;
    *to = (struct total_overrides){.items = calloc(of->count + 1, sizeof *to->items)};
    if (!to->items)
        return -ENOMEM;
    if (of->count)
        memcpy(to->items, of->items, of->count * sizeof *of->items);
    to->count = of->count;
    struct total_override *setting = override_find(to, kind, id);
    if (!setting) {
        setting = &to->items[to->count++];
        *setting = (struct total_override){
            .kind = kind, .id = id, .limits = config_limits_none, .said = config_limits_none};
    }
    file_says(config, kind, id, &says);
    overrides_copy(&setting->limits, limits, parts);
    overrides_copy(&setting->said, &says, parts);
    setting->parts = is_limited(&setting->limits);
    if (!setting->parts)
        *setting = to->items[--to->count];
    if (to->count <= TOTAL_OVERRIDES_MAX)
        return 0;
    total_overrides_free(to);
    return -ENOSPC;
}

void total_overrides_forget(struct total_overrides *settings, const struct config *config,
                            void (*forgotten)(enum total_kind kind, uint32_t id, unsigned parts))
{
    size_t kept = 0;
    for (size_t i = 0; i < settings->count; i++) {
        struct total_override setting = settings->items[i];
        struct config_limits says;
        file_says(config, setting.kind, setting.id, &says);
        unsigned still = override_holds(&setting, &says);
        if (still != setting.parts && forgotten)
            forgotten(setting.kind, setting.id, setting.parts & ~still);
        overrides_copy(&setting.limits, &config_limits_none, ~still);
        setting.parts = still;
        if (still)
            settings->items[kept++] = setting;
    }
    settings->count = kept;
}

void total_overrides_free(struct total_overrides *settings)
{
    free(settings->items);
    *settings = (struct total_overrides){0};
}
