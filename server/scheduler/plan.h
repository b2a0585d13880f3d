/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * plan: the arithmetic of plans, leases and what a client has coming.
 *
 * A plan is a stretch of time in which every share comes out: lease / precision.
 * With the defaults, 250 ms and 5 %, that is 5 s, 20 leases. A fraction is a whole
 * number of hundredths of a per cent (PLAN_WHOLE is 1). Times are nanoseconds.
 *
 * A credit grows with the clock by its fraction and shrinks by what is charged to
 * it. It is kept in parts of a nanosecond (1 / PLAN_WHOLE), so a fraction of any
 * stretch of time is a whole number of parts: nothing is rounded, and nothing drifts,
 * however many plans go by. Below 0 it is debt.
 *
 * Pure functions on the caller's memory; any thread, one at a time for an object.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_PLAN_H
#define GPUSHARE_SERVER_SCHEDULER_PLAN_H

#include <stdint.h>

#define PLAN_WHOLE           10000u
#define PLAN_NEVER           UINT64_MAX
#define PLAN_LEASE_LEAST     UINT64_C(5000000)     /* 5 ms */
#define PLAN_LEASE_MOST      UINT64_C(10000000000) /* 10 s */
#define PLAN_PRECISION_LEAST 100u                  /* 1 %: the longest plan is 1000 s */
#define PLAN_PRECISION_MOST  5000u                 /* 50 % */
/* The longest stretch that is counted at once: PLAN_WHOLE times it stays within 63 bits, and a
 * debt of a day's device time is beyond any kernel's. */
#define PLAN_STRETCH_MOST UINT64_C(100000000000000)

struct plan {
    uint64_t epoch; /* when the first plan began */
    uint64_t lease_ns;
    uint64_t length_ns;
    uint64_t shortest_ns; /* no lease is shorter: a tenth of a lease, 5 ms at most */
};

struct credit {
    int64_t parts; /* at the time `at` */
    uint64_t at;
    uint32_t rate; /* hundredths of a per cent of the time */
};

/* Lease and precision must be within the ranges above. */
void plan_set(struct plan *plan, uint64_t lease_ns, uint32_t precision, uint64_t now);

/* When the plan ends in which `now` (at or after the epoch) lies; one that starts now ends later.
 */
uint64_t plan_end(const struct plan *plan, uint64_t now);

/* A fraction of one plan, rounded down. */
uint64_t plan_share(const struct plan *plan, uint32_t rate);

/* The credit that a client may save up while it has nothing to do: a lease, or its share of a plan
 * if less. */
int64_t plan_burst(const struct plan *plan, uint32_t rate);
/* The credit that a client may be owed of one plan if it wanted the device all along and was not
 * served: the plan's share, and enough for the shortest lease. */
int64_t plan_owed(const struct plan *plan, uint32_t rate);

/* Lets it grow up to now, and not above `most` parts (what is above already is cut off). */
void credit_settle(struct credit *credit, uint64_t now, int64_t most);

/* The whole of ns is taken, below 0 if need be. */
void credit_charge(struct credit *credit, uint64_t ns);

/* The first nanosecond, from credit->at on, at which it is not below 0; PLAN_NEVER for a rate of 0
 * in debt. */
uint64_t credit_ready(const struct credit *credit);

/* The time that it can pay for by the end of the plan in which `at` (credit->at or later) lies, in
 * whole nanoseconds; 0 in debt. */
uint64_t credit_budget(const struct credit *credit, const struct plan *plan, uint64_t at);

#endif
