/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The configuration that is in force, and what it grants. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/supervisor/config.h"
#include "server/supervisor/reload.h"
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
    if (result == -ENOENT && supervisor->config) {
        size_t length = strlen(text);
        snprintf(text + length, text_bytes - length,
                 ": it was in force; to lift all limits, empty it");
    }
    if (result == 0)
        result = config_resolve(*config, &settings->schedule, supervisor->uuids,
                                supervisor->device_count, text, text_bytes);
    return result;
}

int supervisor_reload(struct supervisor *supervisor, char *text, size_t text_bytes,
                      supervisor_reload_done *done, void *context)
{
    struct config *config;
    if (supervisor->reload) {
        snprintf(text, text_bytes, "another reload is under way: try again when it is over");
        return -EBUSY;
    }
    int result = load(supervisor, &config, text, text_bytes);
    if (result < 0) {
        config_free(config);
        return result;
    }
    return reload_begin(supervisor, config, text, text_bytes, done, context);
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
