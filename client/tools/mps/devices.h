/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * devices: the GPUs that a command of MPS means, and the amounts in its words. After a failure
 * servers->why has the sentence. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_MPS_DEVICES_H
#define GPUSHARE_CLIENT_TOOLS_MPS_DEVICES_H

#include "client/tools/mps/servers.h"

/* How many GPUs the server has: their indices are below that. */
enum admin_outcome devices_count(struct servers *servers, json_int_t *count);

/* Reads the index of a GPU, which need not exist. */
enum admin_outcome devices_read(struct servers *servers, const char *text, json_int_t *gpu);

/* The GPU that a server has. */
enum admin_outcome devices_of_server(struct servers *servers, const char *pid, json_int_t *gpu);

/* The same, if it is the one with this index: scripts name both. */
enum admin_outcome devices_of_both(struct servers *servers, const char *pid, const char *device,
                                   json_int_t *gpu);

/* Prints a percentage with a digit behind the point, as MPS does. */
void devices_print_percentage(double percent);

#endif
