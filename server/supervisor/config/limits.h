/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_limits: what one block of a configuration gives and allows: threads, memory,
 * host_memory and time, each with request and limit, and priority; fraction and
 * replicas are spellings of these.
 *
 * A limit is never exceeded, a request is guaranteed. Blocks can only tighten each
 * other: of limits the least holds, and of requests too, so that an administrator's
 * lowers a client's; a block without a request leaves others' alone, and 0 says
 * that nothing may be reserved. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_LIMITS_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "common/limits/allowance.h"
#include "server/supervisor/config/reader.h"

#define CONFIG_REPLICAS_MAX 1000

/*
 * Reads a mapping of limits; other, if not NULL, knows its other keys. to is set. A request above
 * a limit of the same block, and replicas whose requests come to more than there is,
 * are refused with the numbers.
 */
uint32_t config_limits_read(struct config_reader *reader, const struct config_node *map,
                            const char *what, const struct config_table *other,
                            struct allowance *to);

/* Reads a mapping of what users or groups have in total: limits alone, of the resources that have a
 * total; id knows its other key. to is set. */
uint32_t config_limits_read_total(struct config_reader *reader, const struct config_node *map,
                                  const char *what, const struct config_table *id,
                                  struct allowance *to);

/* What one of n replicas may have: memory and threads, rounded down. n from 1. line: where the file
 * says so. */
void config_limits_replicate(struct allowance *to, uint64_t n, unsigned line);

#endif
