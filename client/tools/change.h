/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * change: turns the words after `gpusharectl set` and `get` into a request of the admin socket.
 * Names and their number are checked here; values are checked by the server, which knows the
 * devices. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_CHANGE_H
#define GPUSHARE_CLIENT_TOOLS_CHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/error.h"

/*
 * Reads a target: "7", "client 7" or "client:7", "user 1000" or "user:1000", "group 50" or
 * "group:50", "cgroup /a" or "cgroup:/a", "gpu 0" or "gpu:0". to_kill: refuse all but clients and
 * users. Adds the target to request; *used: how many words it took. Returns 0, or an error number
 * that *why explains.
 */
uint32_t change_read_target(json_t *request, int count, char *const words[], bool to_kill,
                            int *used, struct error *why);

/*
 * Adds words of the form name=value to a request that has its target. Names for clients: those of
 * the resources in common/limits/allowance.h, each with .request or .limit (without either, the
 * limit is meant), those of the scalars there, and fraction. For a user: the same for each client,
 * or the resources that have totals, with "total." before the name.
 *
 * For a group: these totals. For a control group: those of threads and time. For a GPU: mode,
 * lease, precision, quantum, window_limit, local_memory, departed_time_limit, watchdog_warning,
 * watchdog_limit and standby; or limits of clients to come, with "new_clients." before the name.
 *
 * Returns 0, or an error number that *why explains.
 */
uint32_t change_read_values(json_t *request, int count, char *const words[], struct error *why);

#endif
