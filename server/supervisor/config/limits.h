/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_limits: what one block of a configuration gives and allows: threads, memory,
 * host_memory and time, each with request and limit, and priority; fraction and
 * replicas are spellings of these.
 *
 * A limit is never exceeded, a request is guaranteed. Blocks can only tighten each
 * other: of limits the least holds, and of requests too, so that an administrator's
 * lowers a client's; who says nothing of a request leaves others' alone, and 0 says
 * that nothing may be reserved. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_LIMITS_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "protocol.h"
#include "server/supervisor/config/reader.h"

#define CONFIG_REPLICAS_MAX 1000
#define CONFIG_UNSAID       UINT32_MAX /* of a request that is a share */

/* Shares in hundredths of a per cent, memory in bytes. */
struct config_limits {
    uint64_t memory;               /* PROTO_UNSET: none */
    uint64_t memory_request;       /* PROTO_UNSET: unsaid */
    uint64_t host_memory;          /* PROTO_UNSET: none */
    uint64_t host_request;         /* PROTO_UNSET: unsaid */
    uint32_t memory_share;         /* of the device's memory; 0: none */
    uint32_t memory_request_share; /* of the device's memory; CONFIG_UNSAID */
    uint32_t threads;              /* 0: none */
    uint32_t thread_request;       /* CONFIG_UNSAID */
    uint32_t time;                 /* 0: none */
    uint32_t time_request;         /* CONFIG_UNSAID */
    uint32_t priority;             /* at least; 0: normal */
};

extern const struct config_limits config_limits_none;

/* Keeps the stricter of the two in each respect. */
void config_limits_tighten(struct config_limits *to, const struct config_limits *by);

/*
 * Reads a mapping of limits; other, if not NULL, knows its other keys. to is set. A request above
 * a limit of the same block, and replicas whose requests come to more than there is,
 * are refused with the numbers.
 */
int config_limits_read(struct config_reader *reader, const struct config_node *map,
                       const char *what, const struct config_table *other,
                       struct config_limits *to);

/* The fields memory and host_memory of a total, which has limits alone; to: struct config_limits.
 */
extern const struct config_field config_total_fields[2];

/* What one of n replicas may have: memory and threads, rounded down. n from 1. */
void config_limits_replicate(struct config_limits *to, uint64_t n);

#endif
