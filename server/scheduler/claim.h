/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * claim: what a request is owed, and the pause of those who are owed it.
 *
 * A request is a client's or an account's. Its claim is busy while the client has work or a lease;
 * an account's while one of its clients without a request of their own has. Otherwise it pauses.
 *
 * Functions without state, on the caller's memory. Any thread may call; one object belongs to one
 * thread at a time.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_CLAIM_H
#define GPUSHARE_SERVER_SCHEDULER_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "server/scheduler/plan.h"

/* Zeroed, it pauses since 0. */
struct claim {
    struct credit credit;
    uint64_t paused_since; /* PLAN_NEVER: it is busy */
};

bool claim_is_busy(const struct claim *claim);

/* The claim is busy from now on, or pauses from now on. The credit was settled. Idempotent. */
void claim_set_busy(struct claim *claim, bool busy, uint64_t now);

/* Lets the credit grow up to now. While the claim is busy it may grow to all that it is owed, so
 * that another client's overrun costs it nothing. In a pause debt is worked off, and what is owed
 * lapses as in a lease: the credit grows, and the time is charged. It does not fall below 0, and
 * after plan_pause it is 0. */
void claim_settle(const struct plan *plan, struct claim *claim, uint64_t now);

/* When nothing is owed any more, however much it was. The claim pauses. */
uint64_t claim_forgotten_at(const struct plan *plan, const struct claim *claim);

/* When its credit has lapsed to this many parts, which it exceeds now. The claim pauses. */
uint64_t claim_lapsed_at(const struct plan *plan, const struct claim *claim, int64_t parts);

#endif
