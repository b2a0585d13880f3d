/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * lease group: a set of clients whose multiprocessors overlap, the lease that they share, and how
 * the lease passes from one client to the next.
 *
 *            lease_group_advance: chosen          its end, or nothing to do for idle_ns
 *   nobody ------------------------> open ----------------------------------> closing
 *     ^                               |  ^ chosen again: goes on without a drain |
 *     +-------------------------------+--+------ the last of its work is done ---+
 *
 * A lease begins only when no client of the lease group has a command in flight. One thread at a
 * time, as for scheduler.h.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_LEASE_GROUP_H
#define GPUSHARE_SERVER_SCHEDULER_LEASE_GROUP_H

#include "server/scheduler/scheduler.h"

/* Ends a lease that is over and begins one that can begin. Does nothing in concurrent mode. */
void lease_group_advance(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                         uint64_t now);

/* When the lease group next changes by time alone; SCHEDULER_NEVER if it does not. */
uint64_t lease_group_next_event(const struct scheduler *scheduler,
                                const struct scheduler_lease_group *lease_group);

/* A pause begins; does nothing in one. */
void lease_group_pause_all(struct scheduler *scheduler, uint64_t now);

/* The pause is over: the holder has its lease for as much longer as nothing of it was in flight,
 * and is not charged for that. */
void lease_group_resume(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                        uint64_t now);

/* The number of commands that the holder may submit in addition to those in flight, as far as
 * the lease allows. The lease group has a holder. */
uint32_t lease_group_room(const struct scheduler *scheduler,
                          const struct scheduler_lease_group *lease_group, uint64_t now);

/* Put a client into the list of clients with work, in the order of tickets, and take it out. */
void lease_group_queue(struct scheduler_lease_group *lease_group, struct scheduler_client *client);
void lease_group_unqueue(struct scheduler_lease_group *lease_group,
                         struct scheduler_client *client);

/* The client's sums of its account have changed: the account's other clients in the lease group
 * have the same ones. O(clients). */
void lease_group_tell_siblings(struct scheduler *scheduler, const struct scheduler_client *client);

/* Charges the client's lease up to now. */
void lease_group_charge(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now);

/* A client has left this account. If it was the last one, nothing is left of the account's turn. */
void lease_group_forget(struct scheduler *scheduler, const struct scheduler_account *account);

/* The client comes to its lease group, or to another account there: its sums of time begin at what
 * the others have reached. */
void lease_group_meet(struct scheduler *scheduler, struct scheduler_client *client);

/* Charges a client that had a lease when lease groups changed, once its last work is done. */
void lease_group_settle_leftover(struct scheduler *scheduler, struct scheduler_client *client,
                                 uint64_t now);

/*
 * Computes the lease groups again from the SM groups of all clients. Leases go on if no lease group
 * is split or joined with another. Otherwise, or with `all`, every present lease ends now; commands
 * in flight are still charged to their clients.
 */
void lease_group_regroup(struct scheduler *scheduler, bool all, uint64_t now);

/* The sum of the requests in one lease group: the one that a client with these SM groups is in, or
 * would join. The request of the client's account is left out, or its own if the account has none.
 * The client need not be added yet, but has its accounts. */
struct lease_group_sum {
    uint32_t requests, holders; /* accounts with a request, and clients of others */
    uint32_t some[4];           /* the first four of the requests */
    bool has_account;           /* other clients of its account are there, which has a request */
};
void lease_group_sum(struct scheduler *scheduler, const struct scheduler_client *client,
                     const struct sm_group_set *sm_groups, struct lease_group_sum *sum);

/* Puts the client into the queue of clients that scheduler_decide names. Idempotent. */
void lease_group_name(struct scheduler *scheduler, struct scheduler_client *client);

#endif
