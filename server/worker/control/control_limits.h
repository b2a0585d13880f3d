/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_limits: what each client gets of the device, as the supervisor says it. It passes limits
 * on to the placements and the gate, and asks for the partitions that these need. Control thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_LIMITS_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_LIMITS_H

#include "common/error.h"
#include "server/worker/control/request.h"

/* Gives a new client its share of the device; the other threads need not know the client yet.
 * Returns 0, or an error number with a sentence in why; nothing is taken then. */
uint32_t control_limits_take(struct worker *worker, struct client *client,
                             const struct proto_worker_attach *wanted, struct error *why);
/* Gives the multiprocessors, the partition and the time of a client that leaves to others: nothing
 * of it is in flight, or bound to a CUstream. Idempotent. */
void control_limits_give_back(struct worker *worker, struct client *client);

/* Answers an attaching or a change with the client's present share, when the partition that the
 * client needs is made. That waits for a quiet window; so the answer waits for a quarter of a
 * second at most, and then the client's work alone. If the driver makes none within that time, the
 * request is refused. asked: what to go back to. Returns 0, or -errno if no answer can be sent; so
 * do the functions below. */
int control_limits_answer(struct request *request, struct client *client,
                          const struct limits_answer *asked);

/* Answers a request of the client that still waits for a partition. Returns 0 or -errno. */
int control_limits_hurry(struct worker *worker, struct client *client);

/* The messages: new limits for a client; for an account; another way for all clients to share the
 * device. */
int control_limits_change(struct request *request);
int control_limits_account(struct request *request);
int control_limits_schedule(struct request *request);

/* Divides the device's stream priorities among the clients anew, and asks for a CUstream where
 * a client's has none. */
void control_limits_assign_priorities(struct worker *worker);

/* Asks for what clients and the submitter need, and answers requests that need not wait any more.
 * Returns whether something has to be looked at again soon. *error: 0, or -errno of an answer that
 * could not be sent. */
bool control_limits_finish(struct worker *worker, int *error);

#endif
