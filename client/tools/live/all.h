/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * all: the limits of everything that there is: GPUs, clients, and the totals of the clients' users.
 * The server is asked several times, so a client that comes meanwhile may be missing. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_ALL_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_ALL_H

#include <stdio.h>

#include <jansson.h>

#include "client/tools/admin_client.h"
#include "client/tools/table.h"

/* *answer: {"gpus": [...], "clients": [...], "totals": [...]} with rows as the command has them, or
 * why that failed. The caller owns it; it is NULL without memory. */
enum admin_outcome all_take(const char *socket, json_t **answer);

void all_print(FILE *out, const json_t *answer, struct table_look look);

#endif
