/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * discovery: which devices the driver has, and which of them are served.
 *
 * The supervisor never opens the driver: `gpushare-worker --driver PATH --list`
 * prints a line "device ORDINAL UUID" for each, UUID as 32 hexadecimal digits, or
 * one line "error NUMBER SENTENCE". It makes no context, so a device that is not
 * to be served is not touched.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DISCOVERY_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DISCOVERY_H

#include <stddef.h>
#include <stdint.h>

#include "server/supervisor/settings.h"

struct discovery_device {
    uint32_t ordinal; /* as the driver counts */
    uint8_t uuid[16];
};

struct discovery {
    struct discovery_device devices[SETTINGS_DEVICES_MAX];
    uint32_t count;
};

/*
 * Runs the worker and waits for it, at most a minute. Returns 0 with the devices to
 * serve, in the order in which clients count them (settings' limits);
 * -ENODEV or another -errno with a sentence that says what is wrong.
 */
int discovery_run(struct discovery *discovery, const struct settings *settings, char *text,
                  size_t text_bytes);

/* Reads what the worker printed. Same results. */
int discovery_parse(struct discovery *discovery, char *output, char *text, size_t text_bytes);

/*
 * Keeps the devices that the administrator made visible, in that order. Returns 0;
 * -EINVAL for a device named twice; -ENODEV if none is left.
 */
int discovery_restrict(struct discovery *discovery, const struct limits_wish *limits, char *text,
                       size_t text_bytes);

#endif
