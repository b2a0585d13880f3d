/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * discovery: which devices the driver has, and which of them are served.
 *
 * The supervisor never opens the driver. `gpushare-worker --driver PATH --list` opens it and prints
 * a line "device ORDINAL UUID" for each device (UUID: 32 hexadecimal digits; " mig" follows for a
 * MIG instance), and a line "arena DEVICE_BASE HOST_BASE BYTES" with the address ranges that the
 * driver and the machine can give to all of them; or it prints a line "error NUMBER SENTENCE". That
 * command makes no context, so a device that is not served is not touched.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_DISCOVERY_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/ipc/arena.h"
#include "server/supervisor/settings.h"

struct discovery_device {
    uint32_t ordinal; /* as the driver numbers the device */
    uint8_t uuid[16];
    bool mig; /* an instance of a partitioned GPU */
};

struct discovery {
    struct discovery_device devices[DEVICES_MAX];
    uint32_t count;
    struct arena arena; /* for the address plan; the one that settings name, if they do */
};

/*
 * Runs the worker and waits for it, at most a minute. Returns 0 with the devices to serve, in the
 * order in which clients number them (settings->limits), or an error number that *why explains.
 */
uint32_t discovery_run(struct discovery *discovery, const struct settings *settings,
                       struct error *why);

/* Reads the worker's output, which it overwrites. Returns 0 with all devices, or an error number
 * that *why explains. */
uint32_t discovery_parse(struct discovery *discovery, char *output, struct error *why);

/*
 * Keeps the devices that the administrator made visible, in that order. Returns 0, or an error
 * number that *why explains: a device is unknown or named twice, or none is left.
 */
uint32_t discovery_restrict(struct discovery *discovery, const struct limits_wish *limits,
                            struct error *why);

#endif
