/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/plan.h"

#include "common/util.h"
#include "protocol.h"

void plan_set(struct plan *plan, uint64_t lease_ns, uint32_t precision, uint64_t now)
{
    uint64_t shortest_ns = min(lease_ns / 10, PROTO_WORKER_SCHEDULE_LEASE_MIN);
    *plan = (struct plan){.epoch = now,
                          .lease_ns = lease_ns,
                          .length_ns = lease_ns * PLAN_WHOLE / precision,
                          .shortest_ns = shortest_ns};
}

uint64_t plan_end(const struct plan *plan, uint64_t now)
{
    uint64_t since = saturating_sub(now, plan->epoch);
    return plan->epoch + (since / plan->length_ns + 1) * plan->length_ns;
}

uint64_t plan_share(const struct plan *plan, uint32_t rate)
{
    return plan->length_ns * rate / PLAN_WHOLE;
}

uint64_t plan_pause(const struct plan *plan)
{
    return plan->length_ns / 10;
}

int64_t plan_burst(const struct plan *plan, uint32_t rate)
{
    return (int64_t)min(plan->lease_ns * PLAN_WHOLE, plan->length_ns * rate);
}

int64_t plan_owed(const struct plan *plan, uint32_t rate)
{
    return (int64_t)max(plan->length_ns * rate, plan->shortest_ns * PLAN_WHOLE);
}

void plan_credit_settle(struct credit *credit, uint64_t now, int64_t most)
{
    if (now > credit->at) {
        credit->parts += (int64_t)(min(now - credit->at, PLAN_STRETCH_MAX) * credit->rate);
        credit->at = now;
    }
    if (credit->parts > most)
        credit->parts = most;
}

void plan_cap_settle(struct credit *cap, uint64_t now, int64_t most)
{
    if (cap->rate == PLAN_WHOLE)
        *cap = (struct credit){.at = now, .rate = PLAN_WHOLE};
    else
        plan_credit_settle(cap, now, most);
}

void plan_credit_charge(struct credit *credit, uint64_t ns)
{
    int64_t parts = (int64_t)(min(ns, PLAN_STRETCH_MAX) * PLAN_WHOLE);
    /* A debt that keeps growing must not overflow into a credit. */
    credit->parts = credit->parts > INT64_MIN / 2 + parts ? credit->parts - parts : INT64_MIN / 2;
}

uint64_t plan_credit_ready(const struct credit *credit)
{
    if (credit->parts >= 0)
        return credit->at;
    if (credit->rate == 0)
        return PLAN_NEVER;
    uint64_t missing = (uint64_t)-credit->parts;
    return credit->at + (missing + credit->rate - 1) / credit->rate;
}

uint64_t plan_credit_budget(const struct credit *credit, const struct plan *plan, uint64_t at)
{
    uint64_t left = plan_end(plan, at) - credit->at;
    int64_t parts = credit->parts + (int64_t)(left * credit->rate);
    return parts > 0 ? (uint64_t)parts / PLAN_WHOLE : 0;
}
