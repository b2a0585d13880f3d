/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admission: what a client is granted of what it wishes.
 *
 * Pure functions. A limit is the least of the client's wish, the administrator's and
 * what the device has. A request is what the administrator gives or, where he says
 * nothing of it, what the client asks for; never more than either, nor than the limit.
 * Whether the requests of all clients together fit is asked elsewhere.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_ADMISSION_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_ADMISSION_H

#include <stdint.h>

#include "protocol.h"
#include "server/supervisor/config/limits.h"

struct config;
struct config_who;

/* The server's side of it, for one device. */
struct admission {
    struct allowance limits;
    uint64_t max_window; /* 0: from the device's memory */
};

struct grant {
    struct allowance allowance; /* everything is set, no request is above its limit, no `part` */
    uint64_t window_bytes;
};

/* A grant never exceeds its window: addresses are a limit too. */
struct grant admission_grant(const struct admission *admission,
                             const struct proto_device_info *device, const struct allowance *wish);

/* The same under a configuration (NULL: under none), whose rules for this client and the device of
 * that index tighten the limits. 0; -ENOENT: there is no profile as the client asks for. */
int admission_choose(const struct admission *admission, const struct config *config,
                     uint32_t device_index, const struct config_who *who,
                     const struct proto_device_info *device, const struct allowance *wish,
                     struct grant *grant);

#endif
