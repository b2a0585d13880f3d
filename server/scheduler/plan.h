/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * plan: the arithmetic of plans, leases and credits.
 *
 * A plan is the length of time over which each client gets its share: lease / precision. With the
 * defaults, 250 ms and 5 %, that is 5 s, or 20 leases. A fraction is a whole number of hundredths
 * of a per cent; PLAN_WHOLE is 1. Times are nanoseconds.
 *
 * A credit grows with the clock by its fraction, and shrinks by the time that is charged to it.
 * Below 0 it is debt. It is kept in parts of a nanosecond (1 / PLAN_WHOLE), so the fraction of any
 * length of time is a whole number of parts. Nothing is rounded, and nothing drifts, however many
 * plans go by.
 *
 * Functions without state, on the caller's memory. Any thread may call; one object belongs to one
 * thread at a time.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_PLAN_H
#define GPUSHARE_SERVER_SCHEDULER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_WHOLE 10000u
#define PLAN_NEVER UINT64_MAX
/* The longest time that is counted at once: PLAN_WHOLE times it fits into 63 bits. It is more
 * than a day, and no kernel owes that much. */
#define PLAN_STRETCH_MAX UINT64_C(100000000000000)

struct plan {
    uint64_t epoch; /* when the first plan began */
    uint64_t lease_ns;
    uint64_t length_ns;
    uint64_t shortest_ns; /* no lease is shorter than this: a tenth of a lease, 5 ms at most */
};

struct credit {
    int64_t parts; /* parts of a nanosecond, at the time `at` */
    uint64_t at;
    uint32_t rate; /* hundredths of a per cent of the time */
};

/* Begins the first plan now. Lease and precision must be within the
 * ranges of the message worker_schedule, so the longest plan is 1000 s. */
void plan_set(struct plan *plan, uint64_t lease_ns, uint32_t precision, uint64_t now);

/* When the plan that contains `now` ends; `now` is not before the epoch. If a plan begins at
 * `now`, the result is that plan's end. */
uint64_t plan_end(const struct plan *plan, uint64_t now);

/* Returns the fraction of one plan in nanoseconds, rounded down. */
uint64_t plan_share(const struct plan *plan, uint32_t rate);

/* A client that has nothing to do for this long is owed nothing any more: a tenth of a plan. */
uint64_t plan_pause(const struct plan *plan);

/* The most parts of credit that a client may save up while it has nothing to do: one lease, or
 * its share of a plan if that is less. */
int64_t plan_burst(const struct plan *plan, uint32_t rate);
/* The most parts of credit that one plan can owe to a client that wanted the device all along
 * and was not served: its share of the plan, and enough for the shortest lease. */
int64_t plan_owed(const struct plan *plan, uint32_t rate);

/* Lets the credit grow up to now. `most` is its upper bound in parts: any excess is cut off. */
void plan_credit_settle(struct credit *credit, uint64_t now, int64_t most);

/* Lets the credit of a cap grow up to now, to `most` at most. A rate of PLAN_WHOLE binds nobody,
 * and its credit is 0. */
void plan_cap_settle(struct credit *cap, uint64_t now, int64_t most);

/* Takes all of ns from the credit, which may become debt. */
void plan_credit_charge(struct credit *credit, uint64_t ns);

/* The first nanosecond, from credit->at on, at which the credit is not below 0. PLAN_NEVER for a
 * debt with a rate of 0. */
uint64_t plan_credit_ready(const struct credit *credit);

/* The device time, in whole nanoseconds, that the credit can pay for by the end of the plan that
 * contains `at`; 0 if it will still be in debt. `at` is not before credit->at. */
uint64_t plan_credit_budget(const struct credit *credit, const struct plan *plan, uint64_t at);

#endif
