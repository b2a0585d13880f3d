/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * change: what the words after `gpusharectl set` and `get` ask for, as a request of the
 * admin socket. Values are the server's to read, for it knows the devices; names and
 * their number are checked here.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_CHANGE_H
#define GPUSHARE_CLIENT_TOOLS_CHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Room for any sentence of these. */
#define CHANGE_WHY 400

/*
 * Whom: "7", "client 7" or "client:7", "user 1000" or "user:1000", "group 50" or "group:50",
 * "gpu 0" or "gpu:0".
 * clients_only: of kill. Adds the member to request. Returns how many words that took; or a
 * negative number with a sentence in why.
 */
int change_read_target(json_t *request, int count, char *const words[], bool clients_only,
                       char *why, size_t why_size);

/*
 * Adds "name=value" words: of clients threads, time, memory and host_memory, each with
 * .request or .limit (which is meant without), fraction and priority; of a user, in place of
 * these, and of a group total.memory and total.host_memory; of a GPU mode, lease, precision
 * and quantum. Returns 0; or a negative number with a sentence in why.
 */
int change_read_values(json_t *request, int count, char *const words[], char *why, size_t why_size);

#endif
