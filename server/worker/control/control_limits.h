/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_limits: what each client gets of the device, as the supervisor says it. It passes limits
 * on to the placements and the gate, and makes the partitions that these need. Control thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_LIMITS_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_LIMITS_H

#include "common/error.h"
#include "server/worker/control/request.h"

/* Gives a new client its share of the device; the other threads need not know the client yet.
 * Returns 0, or an error number with a sentence in why; nothing is taken then. */
uint32_t control_limits_take(struct worker *worker, struct client *client,
                             const struct proto_worker_attach *wanted, struct error *why);
/* Takes the share of a client that leaves: nothing of it is in flight or bound to a CUstream.
 * Idempotent. */
void control_limits_give_back(struct worker *worker, struct client *client);

/* Answers with the client's present share. Returns 0, or -errno if no answer can be sent; so do the
 * two functions below. */
int control_limits_answer(const struct request *request, const struct client *client);

/* The two messages: new limits for a client; another way for all clients to share the device. */
int control_limits_change(struct request *request);
int control_limits_schedule(struct request *request);

/* Makes the partitions that clients have to move to. Returns 0, or an error number at the first
 * that can't be made; the others are made later. */
uint32_t control_limits_make_partitions(struct worker *worker);
/* Divides the device's stream priorities among the clients anew, and makes a CUstream where a
 * client's has none. */
void control_limits_assign_priorities(struct worker *worker);

/* Makes CUstreams of a priority for all open streams that run on a partition, and for `more` that
 * are about to. 0, or an error number if the partition has none at all. */
uint32_t control_limits_prepare_streams(struct worker *worker, struct partition *partition,
                                        int32_t priority, uint32_t more);
/* Makes partitions as above, makes the CUstream that the submitter wished for, and destroys the
 * partitions that are not to be kept once their work is done. Returns whether something has to
 * wait. */
bool control_limits_finish(struct worker *worker);

#endif
