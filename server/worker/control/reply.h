/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * reply: the worker's messages to the supervisor. Control thread. Each function waits while the
 * socket is full, and returns 0 or -errno.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_REPLY_H
#define GPUSHARE_SERVER_WORKER_CONTROL_REPLY_H

#include "common/ipc/channel.h"
#include "server/worker/worker.h"

/* Sends a message without tail and descriptors. serial is that of the request that it answers, or
 * 0. body is of the opcode's type; NULL if that has no bytes. */
int reply_send(struct worker *worker, uint16_t opcode, uint64_t serial, uint32_t client,
               const void *body);
/* Sends a message that may have a tail and descriptors. */
int reply_send_with(struct worker *worker, const struct channel_packet *packet);
/* "failed": the error's number (0: unknown) and its text, with '?' for control characters. */
int reply_refuse(struct worker *worker, uint64_t serial, uint32_t client, const struct error *why);

#endif
