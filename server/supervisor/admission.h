/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admission: what a client is granted of what it wishes.
 *
 * Pure functions. A wish can only tighten: the grant is the least of the wish, the
 * administrator's limit and what the device has.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMISSION_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMISSION_H

#include <stdint.h>

#include "protocol.h"
#include "server/supervisor/config.h"

/* The server's side of it, for one device. */
struct admission {
    uint64_t memory_limit;      /* PROTO_UNSET: what the device has */
    uint64_t host_limit;        /* of one client */
    uint32_t thread_percentage; /* 0: none */
    uint32_t priority;          /* at least */
    uint64_t max_window;        /* 0: from the device's memory */
};

struct grant {
    uint64_t memory_limit;
    uint64_t host_limit;
    uint64_t window_bytes;
    uint32_t thread_percentage; /* 1 to PROTO_PERCENT_WHOLE */
    uint32_t priority;
    uint32_t thread_request; /* at most thread_percentage */
    uint32_t time_request;   /* at most time_limit */
    uint32_t time_limit;     /* 1 to PROTO_PERCENT_WHOLE */
};

/* What a configuration says, of a device with so many bytes, on top of what holds already. */
void admission_tighten(struct admission *admission, const struct config_limits *limits,
                       uint64_t device_bytes);

/* A grant never exceeds its window: addresses are a limit too. */
struct grant admission_grant(const struct admission *admission,
                             const struct proto_device_info *device,
                             const struct proto_attach *wish);

#endif
