/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/claim.h"

#include "common/util.h"

/* How many plans' shares a client can be owed. An honest overrun takes less. There must be an
 * end, because requests may come to more than the whole while multiprocessors are lent. */
#define PLANS_OWED 16

bool claim_is_busy(const struct claim *claim)
{
    return claim->paused_since == PLAN_NEVER;
}

void claim_set_busy(struct claim *claim, bool busy, uint64_t now)
{
    if (busy)
        claim->paused_since = PLAN_NEVER;
    else
        claim->paused_since = min(claim->paused_since, now);
}

/* As in a lease: the credit grows, and the time is charged. */
static void lapse_credit(struct credit *credit, uint64_t now)
{
    if (now <= credit->at)
        return;
    int64_t parts =
        (int64_t)(min(now - credit->at, PLAN_STRETCH_MAX) * (PLAN_WHOLE - credit->rate));
    credit->parts = max(credit->parts - parts, INT64_C(0));
    credit->at = now;
}

void claim_settle(const struct plan *plan, struct claim *claim, uint64_t now)
{
    struct credit *credit = &claim->credit;
    if (claim_is_busy(claim)) {
        plan_credit_settle(credit, now, PLANS_OWED * plan_owed(plan, credit->rate));
    } else if (credit->parts > 0) {
        lapse_credit(credit, now);
        if (now - claim->paused_since >= plan_pause(plan))
            credit->parts = 0;
    } else {
        plan_credit_settle(credit, now, 0);
    }
}

uint64_t claim_forgotten_at(const struct plan *plan, const struct claim *claim)
{
    return claim->paused_since + plan_pause(plan);
}

uint64_t claim_lapsed_at(const struct plan *plan, const struct claim *claim, int64_t parts)
{
    const struct credit *credit = &claim->credit;
    uint64_t forgotten = claim_forgotten_at(plan, claim);
    uint32_t rate = PLAN_WHOLE - credit->rate;
    uint64_t missing = (uint64_t)(credit->parts - max(parts, INT64_C(0)));
    return rate ? min(credit->at + missing / rate + 1, forgotten) : forgotten;
}
