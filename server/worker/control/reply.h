/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * reply: what the worker says to the supervisor. Control thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_REPLY_H
#define GPUSHARE_SERVER_WORKER_CONTROL_REPLY_H

#include "server/worker/worker.h"

/* A message without tail and descriptors; waits where the socket is full. 0 or -errno. */
int reply_send(struct worker *worker, uint16_t opcode, uint64_t serial, uint32_t client,
               const void *body);
/* The same with what may follow. */
int reply_send_with(struct worker *worker, uint16_t opcode, uint64_t serial, uint32_t client,
                    const void *body, const void *tail, size_t tail_bytes, const int *fds,
                    unsigned fd_count);
/* "failed": the error's number (0: unknown) and its text, with '?' for control characters. */
int reply_refuse(struct worker *worker, uint64_t serial, uint32_t client, const struct error *why);

#endif
