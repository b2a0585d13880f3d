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

/* Reads a mapping of what users or groups have in total: limits alone, of the resources that have a
 * total; id knows its other key. to is set. */
uint32_t config_limits_read_total(struct config_reader *reader, const struct config_node *map,
                                  const char *what, const struct config_table *id,
                                  struct allowance *to);

/* Tightens *to to the part of one of n replicas: memory and threads, rounded down. n from 1. line:
 * where the file says so. */
void config_limits_replicate(struct allowance *to, uint64_t n, unsigned line);

#endif
