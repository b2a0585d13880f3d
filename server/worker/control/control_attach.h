/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_attach: the beginning of a client. Its timelines are registered with the device by the
 * caller thread, and only then do the other threads get to know it. Control thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_ATTACH_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_ATTACH_H

#include <stdbool.h>

#include "server/worker/control/request.h"

/* Answered when the client is served. Returns 0, or -errno if no answer can be sent. */
int control_attach(struct request *request);

/* Handles worker_ledger. Returns as control_attach does. */
int control_attach_ledger(struct request *request);

/* A client that is restored has its objects again: from now on it is served. */
int control_attach_resume(struct request *request);

/* A client that leaves while it is attaching: its detach is answered in place of its attach. False:
 * no client of this number is attaching. */
bool control_attach_detach(const struct request *request);

/* The worker ends: no client that is attaching is served any more. */
void control_attach_give_up(struct worker *worker);

/* Answers another supervisor that attaches a client which is attached already, once nothing is
 * under way that the one before had asked for. Returns 0 or -errno. Control thread. */
int control_attach_finish(struct worker *worker, struct client *client);

#endif
