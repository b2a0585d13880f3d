/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * lane: the lease of a set of clients whose multiprocessors overlap, and its passing on.
 *
 *            lane_advance: chosen          its end, or nothing to do for idle_ns
 *   nobody ------------------------> open ----------------------------------> closing
 *     ^                               |  ^ chosen again: goes on without a drain |
 *     +-------------------------------+--+------ the last of its work is done ---+
 *
 * A lease begins only when nothing of any client of the lane is in flight.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_LANE_H
#define GPUSHARE_SERVER_SCHEDULER_LANE_H

#include "server/scheduler/scheduler.h"

/* Ends what is over, begins what can begin. Nothing in concurrent mode. */
void lane_advance(struct scheduler *scheduler, struct scheduler_lane *lane, uint64_t now);

/* When the lane changes by time alone. */
uint64_t lane_next_event(const struct scheduler *scheduler, const struct scheduler_lane *lane);

/* Commands that the holder may submit more, by the lease alone. */
uint32_t lane_room(const struct scheduler *scheduler, const struct scheduler_lane *lane,
                   uint64_t now);

/* The list of clients with work, oldest ticket first. */
void lane_queue(struct scheduler_lane *lane, struct scheduler_client *client);
void lane_unqueue(struct scheduler_lane *lane, struct scheduler_client *client);

/* A client's last work is done that had a lease before lanes changed. */
void lane_settle_leftover(struct scheduler *scheduler, struct scheduler_client *client,
                          uint64_t now);

/*
 * Finds the lanes anew from all clients' SM groups. Leases go on where no lane is split or
 * joined with another. Else, or with `all`, those that run end now; what their clients
 * have in flight is still charged to them.
 */
void lane_regroup(struct scheduler *scheduler, bool all, uint64_t now);

/* The clients' requests in the lane that a client with these SM groups is in or would come into,
 * the client's own left out. */
struct lane_sum {
    uint32_t requests, clients;
    uint32_t some[4]; /* the first of them */
};
void lane_sum(const struct scheduler *scheduler, const struct scheduler_client *client,
              const struct share_set *sm_groups, struct lane_sum *sum);

/* For scheduler_decide. */
void lane_name(struct scheduler *scheduler, struct scheduler_client *client);

#endif
