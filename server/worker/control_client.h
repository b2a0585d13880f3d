/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_client: what the control thread does for one client: the messages, and
 * what had to wait until work was done.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CLIENT_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CLIENT_H

#include "common/channel.h"
#include "server/worker/worker.h"

/* A message without tail and descriptors; waits where the socket is full. 0 or -errno. */
int control_send(struct worker *worker, uint16_t opcode, uint32_t serial, uint32_t client,
                 const void *body);
/* The same with what may follow. */
int control_send_with(struct worker *worker, uint16_t opcode, uint32_t serial, uint32_t client,
                      const void *body, const void *tail, size_t tail_bytes, const int *fds,
                      unsigned fd_count);
int control_refuse(struct worker *worker, uint32_t serial, uint32_t client, uint32_t error,
                   const char *text);

/* Carries out the frees whose work is done and answers them. */
int control_finish_frees(struct worker *worker, struct client *client);
/* Answers for the modules that the loader is done with. */
int control_finish_loads(struct worker *worker);
/* Closed streams whose work is done become free. */
void control_finish_streams(struct worker *worker, struct client *client);

/* Makes the partitions that clients are to move to. 0 or an error number; the rest is left. */
uint32_t control_make_places(struct worker *worker);
/* The same, and destroys the partitions that are not to be kept once their work is done. Returns
 * whether something has to wait. */
bool control_finish_places(struct worker *worker);

/* What the client has used so far; takes its lock. */
void control_client_usage(struct worker *worker, struct client *client,
                          struct proto_worker_usage *used);

#endif
