/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * lease group: the lease of a set of clients whose multiprocessors overlap, and its passing on.
 *
 *            lease_group_advance: chosen          its end, or nothing to do for idle_ns
 *   nobody ------------------------> open ----------------------------------> closing
 *     ^                               |  ^ chosen again: goes on without a drain |
 *     +-------------------------------+--+------ the last of its work is done ---+
 *
 * A lease begins only when nothing of any client of the lease group is in flight.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_LEASE_GROUP_H
#define GPUSHARE_SERVER_SCHEDULER_LEASE_GROUP_H

#include "server/scheduler/scheduler.h"

/* Ends what is over, begins what can begin. Nothing in concurrent mode. */
void lease_group_advance(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                         uint64_t now);

/* When the lease group changes by time alone. */
uint64_t lease_group_next_event(const struct scheduler *scheduler,
                                const struct scheduler_lease_group *lease_group);

/* Commands that the holder may submit more, by the lease alone. */
uint32_t lease_group_room(const struct scheduler *scheduler,
                          const struct scheduler_lease_group *lease_group, uint64_t now);

/* The list of clients with work, oldest ticket first. */
void lease_group_queue(struct scheduler_lease_group *lease_group, struct scheduler_client *client);
void lease_group_unqueue(struct scheduler_lease_group *lease_group,
                         struct scheduler_client *client);

/* A client's last work is done that had a lease before lease groups changed. */
void lease_group_settle_leftover(struct scheduler *scheduler, struct scheduler_client *client,
                                 uint64_t now);

/*
 * Recomputes the lease groups from all clients' SM groups. Leases go on where no lease group is
 * split or joined with another. Else, or with `all`, those that run end now; what their clients
 * have in flight is still charged to them.
 */
void lease_group_regroup(struct scheduler *scheduler, bool all, uint64_t now);

/* The clients' requests in the lease group that a client with these SM groups is in or would come
 * into, the client's own left out. */
struct lease_group_sum {
    uint32_t requests, clients;
    uint32_t some[4]; /* the first of them */
};
void lease_group_sum(const struct scheduler *scheduler, const struct scheduler_client *client,
                     const struct share_set *sm_groups, struct lease_group_sum *sum);

/* For scheduler_decide. */
void lease_group_name(struct scheduler *scheduler, struct scheduler_client *client);

#endif
