/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admission: decides a client's grant from its wish.
 *
 * A limit is the smallest of the client's wish, the administrator's limit and what the device has.
 * A request is the administrator's or, if the administrator set none, the client's; if both set
 * one, the smaller counts. A request never exceeds its limit. Whether the requests of all clients
 * fit together is asked elsewhere (the worker, session_quota). Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_ADMISSION_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_ADMISSION_H

#include <stdint.h>

#include "common/limits/allowance.h"
#include "protocol.h"
#include "server/supervisor/config/limits.h"

struct config;
struct config_who;

/* The server's part of the decision, for one device. */
struct admission {
    struct allowance limits;
    uint64_t max_window; /* 0: from the device's memory */
    uint64_t host_total; /* pinned host memory of all clients, bytes; 0: not known */
};

struct grant {
    /* Every value is set; `part` is unset. No request exceeds its limit, but for a client's own
     * request for more memory than the device has, or than the server has pinned host memory: it
     * can't be guaranteed. */
    struct allowance allowance;
    uint64_t window_bytes;
    /* Of these requests those that the client makes for itself, and of which nobody else says
     * anything: they may be lowered (session/own_request.h). 0: there is none. */
    uint64_t own[RESOURCES];
};

/* Computes a grant. It never exceeds its window, since addresses are a limit too. */
struct grant admission_grant(const struct admission *admission,
                             const struct proto_device_info *device, const struct allowance *wish);

/* Tightens a grant to the limits that an administrator has set for clients to come; device_memory:
 * of the device, bytes. */
void admission_put_newcomers(struct grant *grant, const struct allowance *newcomers,
                             uint64_t device_memory);

/* Like admission_grant, under a configuration whose rules for this client and this device tighten
 * the limits; NULL: without one. device_index is the device's index in the configuration. Returns
 * 0, or -ENOENT if the profile that the client asks for does not exist. */
int admission_choose(const struct admission *admission, const struct config *config,
                     uint32_t device_index, const struct config_who *who,
                     const struct proto_device_info *device, const struct allowance *wish,
                     struct grant *grant);

#endif
