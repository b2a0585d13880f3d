/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * policy: chooses the client of a lease group that gets the next lease; one function a mode.
 *
 * They look at the lease group's clients with work, in the order in which these got it, let
 * their credit grow up to now, and change nothing else.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_POLICY_H
#define GPUSHARE_SERVER_SCHEDULER_POLICY_H

#include "server/scheduler/scheduler.h"

struct policy_choice {
    struct scheduler_client *client; /* NULL: nobody may */
    uint64_t length_ns;
    bool extra;        /* idle time, not the client's request */
    uint64_t again_at; /* without a client: somebody may then; SCHEDULER_NEVER */
};

void policy_strict_choose(const struct scheduler *scheduler,
                          const struct scheduler_lease_group *lease_group, uint64_t now,
                          struct policy_choice *choice);
void policy_fair_choose(const struct scheduler *scheduler,
                        const struct scheduler_lease_group *lease_group, uint64_t now,
                        struct policy_choice *choice);
void policy_turns_choose(const struct scheduler *scheduler,
                         const struct scheduler_lease_group *lease_group, uint64_t now,
                         struct policy_choice *choice);

/* How much of the time the client may have at most: its request in strict mode, if it has one;
 * else its limit. */
uint32_t policy_strict_cap(const struct scheduler_limits *limits);
uint32_t policy_fair_cap(const struct scheduler_limits *limits);

/* ---- what strict and fair have in common ---- */

/* Lets credit grow up to now: with work to what it is owed, without to one lease. */
void policy_settle(const struct plan *plan, struct scheduler_client *client, uint64_t now);

/* The clients with a claim to a lease by their request, the longest withheld first. Settles all. */
void policy_claims(const struct plan *plan, const struct scheduler_lease_group *lease_group,
                   uint64_t now, struct policy_choice *choice);
/* Without a claim: the client that had the least of the idle time, or of the clients without a
 * request alone. After policy_claims. */
void policy_extra(const struct plan *plan, const struct scheduler_lease_group *lease_group,
                  uint64_t now, bool without_request, struct policy_choice *choice);

/* ---- concurrent: in-flight limits, and duty ---- */

/* When the client may submit by its duty; now or later. Settles it. */
uint64_t policy_concurrent_ready(const struct plan *plan, struct scheduler_client *client,
                                 uint64_t now);

/* Commands that the client may have in flight while `urgent` is the most urgent level that is
 * about, those in flight included; 0 while lower clients have as many as all together may. */
uint32_t policy_concurrent_in_flight_limit(const struct scheduler *scheduler,
                                           const struct scheduler_client *client, uint32_t urgent);

/* The most urgent level that is busy or was less than linger_ns ago; SCHEDULER_LEVELS if none. */
uint32_t policy_concurrent_urgent(struct scheduler *scheduler, uint64_t now);

#endif
