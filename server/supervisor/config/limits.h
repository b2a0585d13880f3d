/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_limits: the limits in one block of a configuration: the resources, each with request and
 * limit, and the scalars. fraction and replicas are other spellings of these.
 *
 * A limit is never exceeded; a request is guaranteed. Blocks can only tighten each other: the
 * smallest limit applies, and the smallest request too, so that an administrator's request lowers a
 * client's. A block without a request leaves other blocks' requests alone; a request of 0 says that
 * nothing may be reserved. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_LIMITS_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/limits/allowance.h"
#include "server/supervisor/config/reader.h"

#define CONFIG_REPLICAS_MAX 1000

/*
 * Reads a mapping of limits into *to, which is written in any case. `what` names the mapping in
 * sentences. `other` has the mapping's other keys; NULL: none. A request above a limit of the same
 * block is refused with the numbers, as are replicas whose requests come to more than there is.
 */
uint32_t config_limits_read(struct config_reader *reader, const struct config_node *map,
                            const char *what, const struct config_table *other,
                            struct allowance *to);

/* An entry of a list of totals. */
struct config_totals {
    const char *what;       /* the entry's name in sentences */
    struct config_table id; /* the key that says whose total it is */
    bool by_worker;         /* of the resources that the worker enforces alone */
};

/* Reads a mapping of what several clients have in total: a limit of each resource that has a total,
 * and a request of those that the worker enforces. to is set. */
uint32_t config_limits_read_total(struct config_reader *reader, const struct config_node *map,
                                  const struct config_totals *totals, struct allowance *to);

/* Tightens *to to the part of one of n replicas: memory and threads, rounded down. n from 1. line:
 * where the file says so. */
void config_limits_replicate(struct allowance *to, uint64_t n, unsigned line);

#endif
