/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * supervisor_private: the one object that holds all others, for the files that carry
 * out what supervisor, clients, view, change, owner_total, trace and reload promise.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_PRIVATE_H
#define GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/error.h"
#include "server/supervisor/device/discovery.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/supervisor.h"

struct reload;

struct supervisor {
    struct server server;
    struct supervisor_events events;
    uint32_t next_number;     /* of a session */
    uint32_t over_limit;      /* sessions that are only kept until they are refused at hello */
    uint64_t refused;         /* connections turned away */
    uv_prepare_t before_wait; /* the loop's turn */
    uv_check_t after_wait;
    uint8_t uuids[SETTINGS_DEVICES_MAX][LIMITS_UUID_BYTES];
    struct reload *reload; /* under way; NULL: none */
    bool ready, stopping, stopped;
    uint64_t started_at;
};

/* supervisor_start without the workers: tests adopt fake ones. */
uint32_t supervisor_add_devices(struct supervisor *supervisor, const struct discovery *discovery,
                                struct error *why);

#endif
