/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/total_setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/supervisor/config_rules.h"

static void file_says(const struct config *config, enum total_kind kind, uint32_t id,
                      struct config_limits *limits)
{
    *limits = config_limits_none;
    if (config && kind == TOTAL_USER)
        config_total_of(config->users, config->user_count, id, limits);
    else if (config)
        config_total_of(config->groups, config->group_count, id, limits);
}

static bool same(const struct config_limits *a, const struct config_limits *b)
{
    return a->memory == b->memory && a->memory_share == b->memory_share &&
           a->host_memory == b->host_memory;
}

static void replace(struct config_limits *limits, const struct config_limits *by)
{
    if (by->memory != PROTO_UNSET || by->memory_share) {
        limits->memory = by->memory;
        limits->memory_share = by->memory_share;
    }
    if (by->host_memory != PROTO_UNSET)
        limits->host_memory = by->host_memory;
}

static struct total_setting *find(const struct total_settings *settings, enum total_kind kind,
                                  uint32_t id)
{
    for (size_t i = 0; i < settings->count; i++)
        if (settings->items[i].kind == kind && settings->items[i].id == id)
            return &settings->items[i];
    return NULL;
}

bool total_settings_limits(const struct total_settings *settings, const struct config *config,
                           enum total_kind kind, uint32_t id, struct config_limits *limits)
{
    const struct total_setting *setting = find(settings, kind, id);
    file_says(config, kind, id, limits);
    if (setting && same(&setting->said, limits))
        replace(limits, &setting->limits);
    return !same(limits, &config_limits_none);
}

int total_settings_with(struct total_settings *to, const struct total_settings *of,
                        const struct config *config, enum total_kind kind, uint32_t id,
                        const struct config_limits *limits)
{
    *to = (struct total_settings){.items = calloc(of->count + 1, sizeof *to->items)};
    if (!to->items)
        return -ENOMEM;
    if (of->count)
        memcpy(to->items, of->items, of->count * sizeof *of->items);
    to->count = of->count;
    struct total_setting *setting = find(to, kind, id);
    if (!setting && to->count == TOTAL_SETTINGS_MAX) {
        total_settings_free(to);
        return -ENOSPC;
    }
    if (!setting) {
        setting = &to->items[to->count++];
        *setting = (struct total_setting){.kind = kind, .id = id, .limits = config_limits_none};
    }
    replace(&setting->limits, limits);
    file_says(config, kind, id, &setting->said);
    return 0;
}

void total_settings_forget(struct total_settings *settings, const struct config *config)
{
    size_t kept = 0;
    for (size_t i = 0; i < settings->count; i++) {
        struct config_limits says;
        file_says(config, settings->items[i].kind, settings->items[i].id, &says);
        if (same(&settings->items[i].said, &says))
            settings->items[kept++] = settings->items[i];
    }
    settings->count = kept;
}

void total_settings_free(struct total_settings *settings)
{
    free(settings->items);
    *settings = (struct total_settings){0};
}
