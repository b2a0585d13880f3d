/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_partition: the partition in which a client's streams are, as the client moves from one to
 * the next, and what a trace says of it. Any thread, under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_CLIENT_PARTITION_H
#define GPUSHARE_SERVER_WORKER_SHARING_CLIENT_PARTITION_H

#include <stdint.h>

struct client;
struct partition;
struct worker;

/* The client's streams belong into this partition from now on. The client owns it already, and puts
 * back the one before. */
void client_partition_move(struct worker *worker, struct client *client, struct partition *to);

/* Writes down where the client's work runs, if a trace is on. */
void client_partition_trace(struct worker *worker, const struct client *client);
/* Records that it waited for multiprocessors. The lock is not needed. */
void client_partition_trace_held(struct worker *worker, const struct client *client, uint64_t from,
                                 uint64_t to);

#endif
