/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* accepted_config: a configuration of two GPUs, from a text that must be accepted. */
#ifndef GPUSHARE_TESTS_UNIT_SUPERVISOR_ACCEPTED_CONFIG_H
#define GPUSHARE_TESTS_UNIT_SUPERVISOR_ACCEPTED_CONFIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "server/supervisor/config/config.h"

static const uint8_t accepted_uuids[2][LIMITS_UUID_BYTES] = {{0x2f, 0x9d, 1}, {0x2f, 0x9e, 2}};

/* The caller frees it. */
static inline struct config *accepted_config(const char *text)
{
    struct config *config;
    struct error why = {0};
    if (config_parse(&config, "file", text, strlen(text), &why) != 0)
        fail_msg("refused: %s", why.text);
    const struct schedule unsaid = schedule_default();
    if (config_resolve(config, &unsaid, accepted_uuids, 2, &why) != 0)
        fail_msg("not resolved: %s", why.text);
    return config;
}

#endif
