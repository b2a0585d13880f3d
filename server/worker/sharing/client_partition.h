/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_partition: the partition that a client's streams belong to, its move to another one, and
 * the records of it in a trace. Any thread, under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_CLIENT_PARTITION_H
#define GPUSHARE_SERVER_WORKER_SHARING_CLIENT_PARTITION_H

#include <stdint.h>

struct client;
struct partition;
struct sm_group_set;
struct worker;

/* The priority of the client's first stream on these SM groups, which a partition for the client is
 * made with. Control thread, without the client's lock. */
int32_t client_partition_priority(struct worker *worker, struct client *client,
                                  const struct sm_group_set *sm_groups);

/* The client's streams belong to this partition from now on, which the caller has got for the
 * client (partition_find, partition_make). Puts back the partition that the client had. */
void client_partition_move(struct worker *worker, struct client *client, struct partition *to);

/* If a trace is on, records on which multiprocessors the client's work runs. */
void client_partition_trace(struct worker *worker, const struct client *client);
/* Records that the client waited for multiprocessors between these times (ns). Needs no lock. */
void client_partition_trace_held(struct worker *worker, const struct client *client, uint64_t from,
                                 uint64_t to);

#endif
