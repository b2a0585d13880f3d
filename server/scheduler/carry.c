/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/carry.h"

#include "common/util.h"
#include "server/scheduler/lease_group.h"
#include "server/scheduler/policy.h"

/* Those to come stay above it for longer than any machine runs. */
#define TICKET_MAX (UINT64_MAX / 2)

/* ---- taking ---- */

/* The part of a lease under way that is not charged yet. */
static uint64_t count_uncharged(const struct scheduler *scheduler,
                                const struct scheduler_client *client, uint64_t now)
{
    const struct scheduler_lease_group *lease_group = client->lease_group;
    if (!client->leased || scheduler->schedule.mode == PROTO_MODE_CONCURRENT)
        return 0;
    /* In a pause the lease stands still from then on (scheduler_pause). */
    if (scheduler->paused && lease_group->holder == client)
        now = min(now, lease_group->drained_at);
    return saturating_sub(now, client->charged_to);
}

static bool binds_leases(const struct scheduler *scheduler)
{
    return scheduler->schedule.mode != PROTO_MODE_TURNS;
}

static bool is_of_account(const struct scheduler_client *client)
{
    return client->on_extra || client->pays != &client->request;
}

/* The one that has the turn goes behind the others with it. */
static bool waits_for_turn(const struct scheduler_client *client)
{
    return client->wants && !client->leased;
}

void carry_client_take(const struct scheduler *scheduler, const struct scheduler_client *client,
                       uint64_t now, struct carry_client *to)
{
    const struct plan *plan = &scheduler->plan;
    const struct scheduler_lease_group *lease_group = client->lease_group;
    const uint64_t ns = count_uncharged(scheduler, client, now);
    const uint64_t charged = binds_leases(scheduler) ? ns : 0;
    const uint64_t extra = client->on_extra ? charged : 0;
    const uint64_t pair = max(client->pair.lately_ns, client->pair.before_ns);
    *to = (struct carry_client){.request = client->request,
                                .cap = client->cap,
                                .duty = client->duty,
                                .arrived = client->arrived,
                                .spends = client->spends,
                                .crowd = lease_group->wants_count,
                                .mean_ns = client->mean_ns,
                                .peak_ns = client->peak_ns,
                                .pair_ns = pair,
                                .charged_ns = client->charged_ns + ns,
                                .leases = client->leases,
                                .ticket = waits_for_turn(client) ? client->ticket : 0,
                                .tickets = scheduler->tickets};
    claim_settle(plan, &to->request, now);
    plan_cap_settle(&to->cap, now,
                    policy_cap_most(plan, client->cap.rate, claim_is_busy(&to->request)));
    plan_cap_settle(&to->duty, now, plan_burst(plan, client->duty.rate));
    plan_credit_charge(&to->cap, charged);
    if (client->leased && !is_of_account(client))
        plan_credit_charge(&to->request.credit, charged);
    to->account_ahead_ns = saturating_sub(client->account_extra_ns + extra, lease_group->extra_ns);
    to->ahead_ns = saturating_sub(client->extra_ns + (is_of_account(client) ? charged : 0),
                                  client->account_floor_ns);
    for (enum scheduler_hold hold = 0; hold < SCHEDULER_HOLDS; hold++)
        to->throttled_ns[hold] = scheduler_throttled(scheduler, client, hold, now);
}

static bool counts_in(const struct scheduler_client *client,
                      const struct scheduler_account *account)
{
    for (uint32_t i = 0; i < client->accounts.count; i++)
        if (client->accounts.of[i] == account)
            return true;
    return false;
}

/* Takes the client's lease under way from an account in which it counts. */
static void charge_account(const struct scheduler *scheduler, const struct scheduler_client *client,
                           const struct scheduler_account *account, uint64_t now,
                           struct carry_account *to)
{
    const uint64_t ns = count_uncharged(scheduler, client, now);
    if (!binds_leases(scheduler)) {
        if (account == client->accounts.of[0])
            to->debt_ns += saturating_sub(now, client->lease_group->lease_ends);
        return;
    }
    plan_credit_charge(&to->cap, ns);
    if (!client->on_extra && client->pays == &account->request)
        plan_credit_charge(&to->request.credit, ns);
}

void carry_account_take(const struct scheduler *scheduler, const struct scheduler_account *account,
                        uint64_t now, struct carry_account *to)
{
    const struct plan *plan = &scheduler->plan;
    *to = (struct carry_account){.number = account->number,
                                 .request = account->request,
                                 .cap = account->cap,
                                 .duty = account->duty,
                                 .debt_ns = account->debt_ns,
                                 .ticket = account->wants ? account->ticket : 0};
    claim_settle(plan, &to->request, now);
    plan_cap_settle(&to->cap, now, account_cap_most(plan, account->cap.rate));
    plan_cap_settle(&to->duty, now, plan_burst(plan, account->duty.rate));
    for (uint32_t i = 0; i < scheduler->lease_group_count; i++) {
        const struct scheduler_client *holder = scheduler->lease_groups[i].holder;
        if (holder && counts_in(holder, account))
            charge_account(scheduler, holder, account, now, to);
        if (holder && holder->leased && holder->accounts.of[0] == account)
            to->ticket = 0;
    }
}

/* ---- giving ---- */

/* Puts a credit that was taken in the place of a new one, which keeps its rate. most: what a new
 * one may have at most. */
static void give_credit(struct credit *credit, const struct credit *from, int64_t most,
                        uint64_t now)
{
    struct credit at = *from;
    const int64_t least = -(int64_t)(PLAN_STRETCH_MAX * (PLAN_WHOLE - 1));
    at.at = min(at.at, now);
    at.rate = min(at.rate, PLAN_WHOLE);
    at.parts = max(at.parts, least);
    if (at.parts < 0)
        plan_credit_settle(&at, now, 0);
    credit->parts = min(at.parts, most);
    credit->at = now;
}

/* A claim that was busy pauses from now on. Of a short pause nothing lapses meanwhile: the client
 * could not have been served. */
static void give_claim(const struct plan *plan, struct claim *claim, const struct claim *from,
                       uint64_t now)
{
    claim->paused_since = min(from->paused_since, now);
    bool lapsed = now >= claim_forgotten_at(plan, claim);
    /* The most that a client may be owed is looked at when it has work next. */
    give_credit(&claim->credit, &from->credit, lapsed ? 0 : INT64_MAX / 2, now);
}

/* A rate of PLAN_WHOLE binds nobody. */
static void give_bound(struct credit *credit, const struct credit *from, int64_t most, uint64_t now)
{
    if (credit->rate != PLAN_WHOLE)
        give_credit(credit, from, most, now);
}

static struct kept_place place_until(uint64_t ticket, const struct scheduler *scheduler,
                                     uint64_t now)
{
    const uint64_t most = min(ticket, TICKET_MAX);
    return (struct kept_place){.ticket = most, .until = now + scheduler->schedule.quantum_ns};
}

void carry_client_give(struct scheduler *scheduler, struct scheduler_client *client,
                       const struct carry_client *from, uint64_t now)
{
    const struct plan *plan = &scheduler->plan;
    give_claim(plan, &client->request, &from->request, now);
    give_bound(&client->cap, &from->cap,
               policy_cap_most(plan, client->cap.rate, claim_is_busy(&from->request)), now);
    give_bound(&client->duty, &from->duty, plan_burst(plan, client->duty.rate), now);
    client->arrived = min(from->arrived, now);
    client->spends = min(from->spends, now);
    client->mean_ns = min(from->mean_ns, PLAN_STRETCH_MAX);
    client->peak_ns = min(from->peak_ns, PLAN_STRETCH_MAX);
    client->pair.lately_ns = min(from->pair_ns, PLAN_STRETCH_MAX);
    client->kept = place_until(from->ticket, scheduler, now);
    /* An account of its own is not carried. */
    if (client->accounts.of[0] == &client->self)
        client->self.kept = client->kept;
    scheduler->tickets = max(scheduler->tickets, min(from->tickets, TICKET_MAX));
    client->charged_ns = from->charged_ns;
    client->leases = from->leases;
    for (enum scheduler_hold hold = 0; hold < SCHEDULER_HOLDS; hold++)
        client->throttled_ns[hold] = from->throttled_ns[hold];
    uint64_t reached = client->lease_group->extra_ns;
    client->account_extra_ns =
        max(client->account_extra_ns, reached + min(from->account_ahead_ns, PLAN_STRETCH_MAX));
    client->extra_ns =
        max(client->extra_ns, client->account_floor_ns + min(from->ahead_ns, PLAN_STRETCH_MAX));
    lease_group_tell_siblings(scheduler, client);
    account_note(plan, client, &scheduler->tickets, now);
}

void carry_client_resume(const struct scheduler *scheduler, struct scheduler_client *client,
                         uint64_t now)
{
    struct scheduler_account *account = client->accounts.of[0];
    client->kept = place_until(client->kept.ticket, scheduler, now);
    account->kept = place_until(account->kept.ticket, scheduler, now);
    if (client->request.credit.parts > 0)
        client->request.credit.at = now;
    client->request.paused_since = now;
}

void carry_account_give(struct scheduler *scheduler, struct scheduler_account *account,
                        const struct carry_account *from, uint64_t now)
{
    const struct plan *plan = &scheduler->plan;
    give_claim(plan, &account->request, &from->request, now);
    give_bound(&account->cap, &from->cap, account_cap_most(plan, account->cap.rate), now);
    give_bound(&account->duty, &from->duty, plan_burst(plan, account->duty.rate), now);
    account->debt_ns = min(from->debt_ns, PLAN_STRETCH_MAX);
    account->kept = place_until(from->ticket, scheduler, now);
}

/* ---- those that do not come back ---- */

static struct credit credit_carried(const struct credit *from, uint64_t now)
{
    uint32_t rate = min(from->rate, PLAN_WHOLE);
    struct credit none = {.at = now, .rate = rate};
    give_credit(&none, from, 0, now);
    return none;
}

void carry_client_leave(struct scheduler *scheduler, uint64_t number,
                        const struct carry_client *client, const struct carry_account *account,
                        uint64_t now)
{
    struct debt debt = {.account = number,
                        .request = credit_carried(&client->request.credit, now),
                        .cap = credit_carried(&client->cap, now),
                        .duty = credit_carried(&client->duty, now)};
    if (!client->leases && !client->charged_ns)
        return;
    if (account) {
        debt.account_request = credit_carried(&account->request.credit, now);
        debt.account_cap = credit_carried(&account->cap, now);
        debt.account_duty = credit_carried(&account->duty, now);
        uint64_t crowd = min(max(client->crowd, UINT64_C(1)), (uint64_t)PLAN_WHOLE);
        debt.extra = (struct credit){.at = now, .rate = PLAN_WHOLE / (uint32_t)crowd};
        plan_credit_charge(&debt.extra, client->account_ahead_ns);
        debts_owe_turn(&debt, account->debt_ns, min(client->crowd, (uint64_t)PLAN_WHOLE),
                       scheduler->schedule.quantum_ns, now);
    }
    debts_keep_of(&scheduler->debts, &debt, client->spends, &scheduler->clients, now);
}
