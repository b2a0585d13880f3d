/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/policy.h"

#include "common/util.h"

/* How many plans' shares a client can be owed. An honest overrun takes less. There must be an
 * end, because requests may come to more than the whole while multiprocessors are lent. */
#define PLANS_OWED 16
/* A processor that is busy for 30 ms then leaves the device enough to do. */
#define ALONE_DEEPER 4

/* A waiting client may be owed all of its request, so that another client's overrun costs it
 * nothing, but only one plan's part under its limit. If request and limit are equal, the larger
 * bound applies. */
static int64_t most_parts(const struct plan *plan, const struct scheduler_client *client,
                          uint32_t rate)
{
    bool busy = client->wants || client->leased;
    int64_t owed = plan_owed(plan, rate);
    return !busy ? plan_burst(plan, rate) : rate == client->request.rate ? owed * PLANS_OWED : owed;
}

void policy_settle(const struct plan *plan, struct scheduler_client *client, uint64_t now)
{
    plan_credit_settle(&client->request, now, most_parts(plan, client, client->request.rate));
    if (client->cap.rate == PLAN_WHOLE)
        client->cap = (struct credit){.at = now, .rate = PLAN_WHOLE}; /* binds nobody */
    else
        plan_credit_settle(&client->cap, now, most_parts(plan, client, client->cap.rate));
}

/* The length that the cap leaves for a lease that begins now; 0 if that is too short for a
 * lease. */
static uint64_t cap_leaves(const struct plan *plan, const struct scheduler_client *client,
                           uint64_t now)
{
    if (client->cap.rate == PLAN_WHOLE)
        return plan->lease_ns;
    if (client->cap.parts < 0)
        return 0;
    uint64_t budget = plan_credit_budget(&client->cap, plan, now);
    return budget < plan->shortest_ns ? 0 : min(budget, plan->lease_ns);
}

/* When the cap allows a lease, if nothing is charged until then. */
static uint64_t cap_ready(const struct plan *plan, const struct scheduler_client *client)
{
    if (client->cap.rate == PLAN_WHOLE)
        return client->cap.at;
    uint64_t ready = plan_credit_ready(&client->cap);
    if (ready == PLAN_NEVER)
        return ready;
    if (plan_credit_budget(&client->cap, plan, ready) >= plan->shortest_ns)
        return ready;
    return plan_end(plan, ready);
}

/* Whether a's share was withheld for longer than b's: credit / rate, multiplied out. */
static bool longer_withheld(const struct credit *a, const struct credit *b)
{
    return (__int128)a->parts * b->rate > (__int128)b->parts * a->rate;
}

/* No longer than the share of one plan, so that a small share comes in every plan. */
static uint64_t claim_max(const struct plan *plan, uint32_t rate)
{
    return max(plan_share(plan, rate), plan->shortest_ns);
}

void policy_claims(const struct plan *plan, const struct scheduler_lease_group *lease_group,
                   uint64_t now, struct policy_choice *choice)
{
    *choice = (struct policy_choice){.again_at = SCHEDULER_NEVER};
    struct scheduler_client *client;
    LIST_FOR_EACH (client, &lease_group->wants, wants_link) {
        policy_settle(plan, client, now);
        if (client->request.rate == 0)
            continue;
        uint64_t length = client->request.parts >= 0 ? cap_leaves(plan, client, now) : 0;
        if (length == 0) {
            uint64_t cap = cap_ready(plan, client), ready = plan_credit_ready(&client->request);
            choice->again_at = min(choice->again_at, max(cap, ready));
        } else if (!choice->client || longer_withheld(&client->request, &choice->client->request)) {
            choice->client = client;
            choice->length_ns = min(length, claim_max(plan, client->request.rate));
        }
    }
}

void policy_extra(const struct plan *plan, const struct scheduler_lease_group *lease_group,
                  uint64_t now, bool without_request, struct policy_choice *choice)
{
    struct scheduler_client *client;
    LIST_FOR_EACH (client, &lease_group->wants, wants_link) {
        if (without_request && client->request.rate)
            continue;
        uint64_t length = cap_leaves(plan, client, now);
        if (length == 0) {
            choice->again_at = min(choice->again_at, cap_ready(plan, client));
        } else if (!choice->client || client->extra_ns < choice->client->extra_ns) {
            choice->client = client;
            choice->length_ns = length;
            choice->extra = true;
        }
    }
}

uint32_t policy_in_flight_limit(const struct scheduler_schedule *schedule,
                                const struct scheduler_client *client, bool alone)
{
    if (schedule->in_flight_limit_ns == 0)
        return schedule->in_flight_limit;
    uint64_t time = schedule->in_flight_limit_ns;
    if (client->borrows)
        time /= 2;
    else if (alone)
        time *= ALONE_DEEPER;
    uint64_t by_time = client->mean_ns ? time / client->mean_ns : 0;
    /* While it borrows, one, and not for each ring: the owner waits for all that is in flight, and
     * a second grid of many blocks would go on in the gaps between the owner's kernels. */
    uint64_t least =
        client->borrows ? 1 : SCHEDULER_IN_FLIGHT_MIN * (uint64_t)max(client->rings, 1u);
    return (uint32_t)min(max(by_time, least), (uint64_t)schedule->in_flight_limit);
}
