/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * orders: the commands of MPS that change something. words and count: as in looks.h. After a
 * failure servers->why has the sentence. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_MPS_ORDERS_H
#define GPUSHARE_CLIENT_TOOLS_MPS_ORDERS_H

#include "client/tools/mps/servers.h"

/* Servers are there whether or not somebody started them: succeeds if each GPU has one. */
enum admin_outcome orders_start_server(struct servers *servers, int count, char *const words[]);

/* With -f, ends the connections of the server's clients; without, is refused. */
enum admin_outcome orders_shutdown_server(struct servers *servers, int count, char *const words[]);

/* Ends all connections that a process has to a server. */
enum admin_outcome orders_terminate_client(struct servers *servers, int count, char *const words[]);

/* Limits of clients to come: of all GPUs, of a server's GPU, or of a GPU by its number. Percentages
 * are printed, as MPS does. */
enum admin_outcome orders_default_percentage(struct servers *servers, int count,
                                             char *const words[]);
enum admin_outcome orders_percentage(struct servers *servers, int count, char *const words[]);
enum admin_outcome orders_default_memory(struct servers *servers, int count, char *const words[]);
enum admin_outcome orders_memory(struct servers *servers, int count, char *const words[]);
enum admin_outcome orders_default_priority(struct servers *servers, int count, char *const words[]);

/* Refused in words that name what to do here. */
enum admin_outcome orders_quit(struct servers *servers, int count, char *const words[]);
enum admin_outcome orders_partitions(struct servers *servers, int count, char *const words[]);

#endif
