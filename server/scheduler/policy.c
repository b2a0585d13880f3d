/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/policy.h"

#include "common/util.h"

/* A processor that is busy for 30 ms then leaves the device enough to do. */
#define ALONE_DEEPER 4

/* A limit holds over any ten plans to a hundredth of them, which is two leases where a plan is
 * twenty (tests/unit/scheduler/test_limit.c). Idleness earns nothing.
 *
 * A waiting client may be owed time under its limit, so that another client's overrun costs it
 * little, and a lease takes some in advance. Both add up in the worst window, and the rest of the
 * hundredth is for late ends. With two leases owed and no bound to the advance, 3 of 10,000 mixes
 * were beyond. */
#define CAP_OWED_HALF_LEASES     3
#define CAP_ADVANCE_OF_LEASE(ns) ((ns) / 4)

int64_t policy_cap_most(const struct plan *plan, uint32_t rate, bool busy)
{
    int64_t leases = (int64_t)(plan->lease_ns * PLAN_WHOLE) / 2 * CAP_OWED_HALF_LEASES;
    return busy ? min(plan_owed(plan, rate), leases) : 0;
}

void policy_settle(const struct plan *plan, struct scheduler_client *client, uint64_t now)
{
    bool busy = claim_is_busy(&client->request);
    /* First the accounts, which have to know since when the client is owed nothing. */
    for (uint32_t i = 0; i < client->accounts.count; i++)
        account_settle(plan, client->accounts.of[i], now);
    claim_settle(plan, &client->request, now);
    plan_cap_settle(&client->cap, now, policy_cap_most(plan, client->cap.rate, busy));
}

/* The length that a cap leaves for a lease that begins now; 0 if that is too short for a lease. */
static uint64_t cap_leaves(const struct plan *plan, const struct credit *cap, uint64_t now)
{
    if (cap->rate == PLAN_WHOLE)
        return plan->lease_ns;
    if (cap->parts < 0)
        return 0;
    uint64_t budget = plan_credit_budget(cap, plan, now);
    /* It grows while the lease lasts. */
    uint64_t paid = (uint64_t)cap->parts + CAP_ADVANCE_OF_LEASE(plan->lease_ns) * PLAN_WHOLE;
    uint64_t most = min(paid / (PLAN_WHOLE - cap->rate), plan->lease_ns);
    return budget < plan->shortest_ns ? 0 : min(budget, most);
}

/* When the cap allows a lease, if nothing is charged until then. */
static uint64_t cap_ready(const struct plan *plan, const struct credit *cap)
{
    if (cap->rate == PLAN_WHOLE)
        return cap->at;
    uint64_t ready = plan_credit_ready(cap);
    if (ready == PLAN_NEVER)
        return ready;
    if (plan_credit_budget(cap, plan, ready) >= plan->shortest_ns)
        return ready;
    return plan_end(plan, ready);
}

/* The same of all the caps of a client's accounts. */
static uint64_t accounts_leave(const struct plan *plan, const struct scheduler_client *client,
                               uint64_t now)
{
    uint64_t least = plan->lease_ns;
    for (uint32_t i = 0; i < client->accounts.count; i++)
        least = min(least, cap_leaves(plan, &client->accounts.of[i]->cap, now));
    return least;
}

static uint64_t accounts_ready(const struct plan *plan, const struct scheduler_client *client)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < client->accounts.count; i++)
        last = max(last, cap_ready(plan, &client->accounts.of[i]->cap));
    return last;
}

/*
 * A client's own request is not above its own limit, and over ten plans it comes to no more than
 * the limit by itself. So the cap does not hold back what the request has paid for already. It
 * could not have saved that up where others had a lease each in a row: in 2,000 random mixes a
 * client with a limit a little above its request had up to 12 points less than the promise.
 *
 * Time in advance of the request is the cap's: idle time is given only when no request is owed any,
 * so from then on the request alone adds nothing to what the cap allowed (test_promise.c).
 */
static uint64_t owed_leaves(const struct plan *plan, const struct credit *request)
{
    if (request->parts <= 0)
        return 0;
    uint64_t growing = max(PLAN_WHOLE - request->rate, 1u);
    uint64_t most = min((uint64_t)request->parts / growing, plan->lease_ns);
    return most < plan->shortest_ns ? 0 : most;
}

static uint64_t owed_ready(const struct plan *plan, const struct credit *request)
{
    int64_t least = (int64_t)(plan->shortest_ns * (PLAN_WHOLE - request->rate));
    if (request->parts >= least)
        return request->at;
    return request->rate ? request->at + ((uint64_t)(least - request->parts) + request->rate - 1) /
                                             request->rate
                         : PLAN_NEVER;
}

/* When a request has paid for a lease of this length, from now on, times its rate. */
static int64_t deadline_parts(const struct credit *request, uint64_t length_ns)
{
    return (int64_t)(length_ns * PLAN_WHOLE) - request->parts;
}

static bool is_due_before(const struct credit *a, uint64_t a_ns, const struct credit *b,
                          uint64_t b_ns)
{
    return (__int128)deadline_parts(a, a_ns) * b->rate <
           (__int128)deadline_parts(b, b_ns) * a->rate;
}

/* Of clients that one account's request pays for, the one that had least of its time is next. */
static bool goes_before(struct scheduler_client *client, uint64_t length,
                        const struct policy_choice *choice)
{
    const struct claim *claim = account_claim(client), *best = account_claim(choice->client);
    return claim == best ? client->extra_ns < choice->client->extra_ns
                         : is_due_before(&claim->credit, length, &best->credit, choice->length_ns);
}

/* The length of a lease that a claim pays for; 0: limits allow none. It is no longer than the share
 * of one plan, so that a small share comes in every plan. */
static uint64_t claim_length(const struct plan *plan, struct scheduler_client *client, uint64_t now)
{
    const struct claim *claim = account_claim(client);
    uint64_t share = max(plan_share(plan, claim->credit.rate), plan->shortest_ns);
    uint64_t own = cap_leaves(plan, &client->cap, now);
    if (claim == &client->request)
        own = max(own, owed_leaves(plan, &claim->credit));
    return min(min(own, accounts_leave(plan, client, now)), share);
}

/* ---- what limits of accounts save up ---- */

static bool has_limited_account(const struct scheduler_client *client)
{
    for (uint32_t i = 0; i < client->accounts.count; i++)
        if (client->accounts.of[i]->cap.rate != PLAN_WHOLE)
            return true;
    return false;
}

/* Adds what a client's request is owed to the sums of its accounts. An account's request counts
 * once, with the first of the clients that it pays for. */
static void add_owed(const struct plan *plan, struct scheduler_client *client, uint64_t now)
{
    const int64_t most = account_owed_most(plan);
    struct scheduler_account *account = client->accounts.of[0];
    const struct claim *claim = account_claim(client);
    if (!claim || (claim == &account->request && account->request_is_owed))
        return;
    policy_settle(plan, client, now);
    account->request_is_owed |= claim == &account->request;
    for (uint32_t i = 0; i < client->accounts.count; i++)
        client->accounts.of[i]->owed += max(min(claim->credit.parts, most), -most);
}

static void trim_cap(const struct plan *plan, struct scheduler_account *account, uint64_t now)
{
    const int64_t owed = min(max(account->owed, INT64_C(0)), account_owed_most(plan));
    account_settle(plan, account, now);
    if (account->cap.rate != PLAN_WHOLE)
        account->cap.parts = min(account->cap.parts, plan_burst(plan, account->cap.rate) + owed);
}

/* While others have the device, a limit saves up what the requests of its clients are owed, beside
 * the lease that it may save up anyway. Where four others had a lease each in a row, three quarters
 * of that time were lost to the limit otherwise: the clients of an account with a limit of 92 % had
 * 63 % of the time, and requested 80 %. */
static void trim_limits(const struct scheduler *scheduler,
                        const struct scheduler_lease_group *lease_group, uint64_t now)
{
    struct scheduler_client *client;
    bool limited = false;
    LIST_FOR_EACH (client, &lease_group->wants, wants_link)
        limited |= has_limited_account(client);
    if (!limited)
        return;
    LIST_FOR_EACH (client, &scheduler->clients, link)
        for (uint32_t i = 0; i < client->accounts.count; i++) {
            client->accounts.of[i]->owed = 0;
            client->accounts.of[i]->request_is_owed = false;
        }
    LIST_FOR_EACH (client, &scheduler->clients, link)
        if (has_limited_account(client))
            add_owed(&scheduler->plan, client, now);
    LIST_FOR_EACH (client, &scheduler->clients, link)
        for (uint32_t i = 0; i < client->accounts.count; i++)
            trim_cap(&scheduler->plan, client->accounts.of[i], now);
}

/* ---- what limits of clients leave of their account's request ---- */

/* A client that has no request of its own, whose account's pays for it, and that has a limit. */
static bool is_limited_sharer(struct scheduler_client *client)
{
    return client->cap.rate != PLAN_WHOLE &&
           account_claim(client) == &client->accounts.of[0]->request;
}

/* While the limits of all clients that an account's request could pay for hold them back, no more
 * than a lease of it is kept, as in a pause nothing is. Otherwise it would save up what nobody can
 * use, and with that go before all others later: a client with a request of 10 % had 7 %. */
static void trim_unusable(const struct scheduler *scheduler,
                          const struct scheduler_lease_group *lease_group, uint64_t now)
{
    const struct plan *plan = &scheduler->plan;
    const int64_t most = (int64_t)(plan->lease_ns * PLAN_WHOLE);
    struct scheduler_client *client;
    bool limited = false;
    LIST_FOR_EACH (client, &lease_group->wants, wants_link) {
        limited |= is_limited_sharer(client);
        client->accounts.of[0]->is_usable = false;
    }
    if (!limited)
        return;
    /* Clients of the account may wait in other lease groups, too. */
    LIST_FOR_EACH (client, &scheduler->clients, link)
        if (client->wants && account_claim(client) == &client->accounts.of[0]->request) {
            policy_settle(plan, client, now);
            client->accounts.of[0]->is_usable |= cap_leaves(plan, &client->cap, now) > 0;
        }
    LIST_FOR_EACH (client, &lease_group->wants, wants_link) {
        struct credit *credit = &client->accounts.of[0]->request.credit;
        if (is_limited_sharer(client) && !client->accounts.of[0]->is_usable)
            credit->parts = min(credit->parts, most);
    }
}

/* ---- the choice among claims ---- */

/* Of an account's request nothing may be left beside those of its clients. */
static bool pays(const struct credit *credit)
{
    return credit->parts > 0 || (credit->parts == 0 && credit->rate);
}

/* When a claim pays for a lease, and limits allow it. */
static uint64_t claim_ready(const struct plan *plan, struct scheduler_client *client)
{
    const struct claim *claim = account_claim(client);
    bool alone = claim->credit.rate || claim->credit.parts > 0;
    uint64_t ready = alone ? plan_credit_ready(&claim->credit) : PLAN_NEVER;
    uint64_t own = cap_ready(plan, &client->cap);
    if (claim == &client->request)
        own = min(own, owed_ready(plan, &claim->credit));
    else
        ready = min(ready, account_grows_at(plan, client->accounts.of[0]));
    return max(max(ready, own), accounts_ready(plan, client));
}

void policy_claims(const struct scheduler *scheduler,
                   const struct scheduler_lease_group *lease_group, uint64_t now,
                   struct policy_choice *choice)
{
    const struct plan *plan = &scheduler->plan;
    *choice = (struct policy_choice){.again_at = SCHEDULER_NEVER};
    struct scheduler_client *client;
    trim_limits(scheduler, lease_group, now);
    trim_unusable(scheduler, lease_group, now);
    LIST_FOR_EACH (client, &lease_group->wants, wants_link) {
        policy_settle(plan, client, now);
        const struct claim *claim = account_claim(client);
        if (!claim)
            continue;
        uint64_t length = pays(&claim->credit) ? claim_length(plan, client, now) : 0;
        if (length == 0) {
            choice->again_at = min(choice->again_at, claim_ready(plan, client));
        } else if (!choice->client || goes_before(client, length, choice)) {
            choice->client = client;
            choice->length_ns = length;
        }
    }
}

/* Idle time goes to the account that had least of it, and there to the client that had least. */
static bool had_less(const struct scheduler_client *client, const struct scheduler_client *other)
{
    return client->accounts.of[0] == other->accounts.of[0]
               ? client->extra_ns < other->extra_ns
               : client->account_extra_ns < other->account_extra_ns;
}

void policy_extra(const struct scheduler *scheduler,
                  const struct scheduler_lease_group *lease_group, uint64_t now,
                  bool without_request, struct policy_choice *choice)
{
    const struct plan *plan = &scheduler->plan;
    struct scheduler_client *client;
    LIST_FOR_EACH (client, &lease_group->wants, wants_link) {
        if (without_request && account_has_request(client))
            continue;
        uint64_t length =
            min(cap_leaves(plan, &client->cap, now), accounts_leave(plan, client, now));
        if (length == 0) {
            uint64_t ready = max(cap_ready(plan, &client->cap), accounts_ready(plan, client));
            choice->again_at = min(choice->again_at, ready);
        } else if (!choice->client || had_less(client, choice->client)) {
            choice->client = client;
            choice->length_ns = length;
            choice->extra = true;
        }
    }
}

/* ---- clients that pause for a moment ---- */

static bool pauses_and_is_owed(const struct scheduler *scheduler,
                               const struct scheduler_lease_group *lease_group,
                               struct scheduler_client *client, uint64_t now)
{
    const struct claim *claim = account_claim(client);
    if (client->lease_group != lease_group || !claim || claim->credit.parts <= 0 ||
        claim_is_busy(claim))
        return false;
    policy_settle(&scheduler->plan, client, now);
    return claim->credit.parts > 0;
}

/* A client may be owed four ninths of a lease when it comes back and finds the device taken. The
 * promise has room for two leases; what other leases and late ends take of it was simulated
 * (tests/unit/scheduler/test_promise.c). With a whole lease one mix of 10,000 went beyond, with
 * half a lease two of 300,000, by a hundredth of a point; with two fifths the device idled too much
 * (test_shares.c, fair_keeps_the_device_busy). */
static void keep_for(const struct plan *plan, struct scheduler_client *client,
                     struct policy_choice *choice, uint64_t *until)
{
    const struct credit *claim = &account_claim(client)->credit;
    int64_t most = (int64_t)(plan->lease_ns * PLAN_WHOLE) / 9 * 4, rate = claim->rate;
    uint64_t peak = choice->client->peak_ns;
    uint64_t waits = peak ? min(peak, choice->length_ns) : choice->length_ns;
    if (claim->parts + rate * (int64_t)choice->length_ns <= most)
        return;
    choice->guest = true;
    if (claim->parts + rate * (int64_t)waits > most || !peak)
        *until =
            max(*until, claim_lapsed_at(plan, account_claim(client), most - rate * (int64_t)waits));
}

void policy_keep(const struct scheduler *scheduler, const struct scheduler_lease_group *lease_group,
                 uint64_t now, struct policy_choice *choice)
{
    uint64_t until = 0;
    struct scheduler_client *client;
    if (!choice->client)
        return;
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        if (!pauses_and_is_owed(scheduler, lease_group, client, now))
            continue;
        uint64_t length = claim_length(&scheduler->plan, client, now);
        if (length && (choice->extra ||
                       is_due_before(&account_claim(client)->credit, length,
                                     &account_claim(choice->client)->credit, choice->length_ns)))
            keep_for(&scheduler->plan, client, choice, &until);
    }
    if (until > now)
        *choice = (struct policy_choice){.again_at = until};
}

/* ---- strict and fair ---- */

uint32_t policy_strict_cap(const struct scheduler_limits *limits)
{
    return limits->request ? PLAN_WHOLE : limits->limit;
}

/* A request is all that its client gets, so only clients without one get idle time. */
void policy_strict_choose(const struct scheduler *scheduler,
                          const struct scheduler_lease_group *lease_group, uint64_t now,
                          struct policy_choice *choice)
{
    policy_claims(scheduler, lease_group, now, choice);
    if (!choice->client)
        policy_extra(scheduler, lease_group, now, true, choice);
    policy_keep(scheduler, lease_group, now, choice);
}

uint32_t policy_fair_cap(const struct scheduler_limits *limits)
{
    return limits->limit;
}

void policy_fair_choose(const struct scheduler *scheduler,
                        const struct scheduler_lease_group *lease_group, uint64_t now,
                        struct policy_choice *choice)
{
    policy_claims(scheduler, lease_group, now, choice);
    if (!choice->client)
        policy_extra(scheduler, lease_group, now, false, choice);
    policy_keep(scheduler, lease_group, now, choice);
}

/* ---- how much a lease may have in flight ---- */

uint32_t policy_in_flight_limit(const struct scheduler_schedule *schedule,
                                const struct scheduler_client *client, bool alone)
{
    if (schedule->in_flight_limit_ns == 0)
        return schedule->in_flight_limit;
    uint64_t time = schedule->in_flight_limit_ns;
    if (client->borrows)
        time /= 2;
    else if (client->guest)
        time /= 8;
    else if (alone)
        time *= ALONE_DEEPER;
    uint64_t by_time = client->mean_ns ? time / client->mean_ns : 0;
    /* While it borrows, one, and not for each ring: the owner waits for all that is in flight, and
     * a second grid of many blocks would go on in the gaps between the owner's kernels. */
    uint64_t least = client->borrows || client->guest
                         ? 1
                         : SCHEDULER_IN_FLIGHT_MIN * (uint64_t)max(client->rings, 1u);
    return (uint32_t)min(max(by_time, least), (uint64_t)schedule->in_flight_limit);
}
