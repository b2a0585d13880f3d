/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_share: what each client gets of the device, as the supervisor says it: its
 * limits to the places and the gate, and the partitions that these need. Control thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_SHARE_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_SHARE_H

#include "common/error.h"
#include "server/worker/control/request.h"

/* A new client's share; the other threads need not know the client yet. 0, or an error number with
 * a sentence and nothing taken. */
uint32_t control_share_take(struct worker *worker, struct client *client,
                            const struct proto_worker_attach *wanted, struct error *why);
/* The client goes; nothing of it is in flight or bound to a CUstream. */
void control_share_give_back(struct worker *worker, struct client *client);

/* Says what the client's share is now. 0 or -errno, as the two messages. */
int control_share_answer(const struct request *request, const struct client *client);

/* The messages: other limits for a client; another way to share for all of them. */
int control_share_change(struct request *request);
int control_share_schedule(struct request *request);

/* Makes the partitions that clients are to move to. 0 or an error number; the rest is left. */
uint32_t control_share_make_partitions(struct worker *worker);
/* Divides the device's stream priorities among the clients anew, and makes a CUstream where a
 * client's has none. */
void control_share_assign_priorities(struct worker *worker);

/* Makes CUstreams of a priority for all open streams that run on a partition, and for `more` that
 * are about to. 0, or an error number if the partition has none at all. */
uint32_t control_share_prepare_streams(struct worker *worker, struct partition *partition,
                                       int32_t priority, uint32_t more);
/* Makes partitions as above, makes the CUstream that the submitter wished for, and destroys the
 * partitions that are not to be kept once their work is done. Returns whether something has to
 * wait. */
bool control_share_finish(struct worker *worker);

#endif
