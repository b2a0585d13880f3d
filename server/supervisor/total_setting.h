/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * total_setting: what users and groups may have in total: what the configuration says,
 * and in its place what an administrator has set since.
 *
 * A setting holds until the configuration says something else of that user or group than
 * it said when it was set. A list never changes but by forgetting: a new one is made
 * of it, so that whoever fails half-way still has the old one. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_TOTAL_SETTING_H
#define GPUSHARE_SERVER_SUPERVISOR_TOTAL_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/supervisor/config.h"
#include "server/supervisor/total.h"

/* Each is looked for whenever a client attaches. */
#define TOTAL_SETTINGS_MAX 1024

/* Of the limits memory or memory_share, and host_memory count; what is none is left as it is. */
struct total_setting {
    enum total_kind kind;
    uint32_t id;
    struct config_limits limits;
    struct config_limits said; /* by the configuration then */
};

struct total_settings {
    struct total_setting *items;
    size_t count;
};

/* What they may have under a configuration (NULL: none is in force). False: nothing limits them. */
bool total_settings_limits(const struct total_settings *settings, const struct config *config,
                           enum total_kind kind, uint32_t id, struct config_limits *limits);

/*
 * *to becomes a copy of `of` in which these limits hold besides, and are to be freed. 0; -ENOMEM;
 * -ENOSPC: there are TOTAL_SETTINGS_MAX.
 */
int total_settings_with(struct total_settings *to, const struct total_settings *of,
                        const struct config *config, enum total_kind kind, uint32_t id,
                        const struct config_limits *limits);

/* This configuration is in force from now on. */
void total_settings_forget(struct total_settings *settings, const struct config *config);

void total_settings_free(struct total_settings *settings);

#endif
