/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * policy: chooses the client of a lease group that gets the next lease. Each mode with leases has a
 * function for that.
 *
 * These functions look at the lease group's clients with work, in the order of their tickets. They
 * let the clients' credits grow up to now, and change nothing else. One thread at a time, as for
 * scheduler.h.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_POLICY_H
#define GPUSHARE_SERVER_SCHEDULER_POLICY_H

#include "server/scheduler/scheduler.h"

struct policy_choice {
    struct scheduler_client *client; /* NULL: no client may have a lease now */
    uint64_t length_ns;
    bool guest;        /* it ends when a client comes back that is owed something */
    bool goes_on;      /* it is the rest of its account's turn */
    bool extra;        /* the lease is idle time, not the client's request */
    uint64_t again_at; /* without a client: when one may have a lease; SCHEDULER_NEVER */
};

/* Fill *choice for a time `now` of the scheduler's clock, in ns: a client of the lease group and
 * the length of its lease, or no client and when to ask again. */
void policy_strict_choose(const struct scheduler *scheduler,
                          const struct scheduler_lease_group *lease_group, uint64_t now,
                          struct policy_choice *choice);
void policy_fair_choose(const struct scheduler *scheduler,
                        const struct scheduler_lease_group *lease_group, uint64_t now,
                        struct policy_choice *choice);
void policy_turns_choose(const struct scheduler *scheduler,
                         const struct scheduler_lease_group *lease_group, uint64_t now,
                         struct policy_choice *choice);

/* The most of the time that the client may have, as its cap: its limit. In strict mode a request
 * is a bound by itself, so a client that has one has no cap. */
uint32_t policy_strict_cap(const struct scheduler_limits *limits);
uint32_t policy_fair_cap(const struct scheduler_limits *limits);

/* ---- parts that strict and fair share ---- */

/* Lets a client's credits grow up to now, with those of all its accounts. With work they may grow
 * to what is owed; without, see PAUSES in scheduler.h. */
void policy_settle(const struct plan *plan, struct scheduler_client *client, uint64_t now);

/* The most parts of credit under a limit of this rate. busy: its client has work or a lease. */
int64_t policy_cap_most(const struct plan *plan, uint32_t rate, bool busy);

/* Chooses among the clients that may have a lease by a request, their own or their account's, the
 * one of the request that will have paid for it first. Settles the credits of all. */
void policy_claims(const struct scheduler *scheduler,
                   const struct scheduler_lease_group *lease_group, uint64_t now,
                   struct policy_choice *choice);
/* Chooses the client that had the least of the idle time, of the account that had the least.
 * without_request: only clients without a request count, their own or their account's. Call it
 * after policy_claims found no client. */
void policy_extra(const struct scheduler *scheduler,
                  const struct scheduler_lease_group *lease_group, uint64_t now,
                  bool without_request, struct policy_choice *choice);

/*
 * Keeps the device for clients that pause for a moment and are owed something, so that none of them
 * is owed more than 4/9 of a lease when it comes back. The chosen client is a guest then, or has to
 * wait (choice->again_at). A claim that is due before theirs is let be. Call it last.
 */
void policy_keep(const struct scheduler *scheduler, const struct scheduler_lease_group *lease_group,
                 uint64_t now, struct policy_choice *choice);

/* ---- concurrent: in-flight limits, and duty ---- */

/* When the client may submit by its duty and those of its accounts: now or later. Settles their
 * credits. */
uint64_t policy_concurrent_ready(const struct plan *plan, struct scheduler_client *client,
                                 uint64_t now);

/* Charges these duties for device time that the client used. */
void policy_concurrent_charge(const struct plan *plan, struct scheduler_client *client,
                              uint64_t device_ns, uint64_t now);

/* The number of commands that the client may have in flight while `urgent` is the most urgent
 * busy level; those in flight count. 0 if the less urgent clients together already have as many
 * as they may. */
uint32_t policy_concurrent_in_flight_limit(const struct scheduler *scheduler,
                                           const struct scheduler_client *client, uint32_t urgent);

/* The most urgent level that is busy or was busy less than linger_ns ago; SCHEDULER_LEVELS if
 * there is none. */
uint32_t policy_concurrent_urgent(struct scheduler *scheduler, uint64_t now);

#endif
