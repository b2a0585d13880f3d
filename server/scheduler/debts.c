/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/debts.h"

#include "common/util.h"
#include "server/scheduler/scheduler.h"

/* When a credit is out of debt; `now` if it is not in debt. */
static uint64_t free_at(const struct credit *credit, uint64_t now)
{
    struct credit at = *credit;
    plan_credit_settle(&at, now, 0);
    return plan_credit_ready(&at);
}

static uint64_t all_free_at(const struct debt *debt, uint64_t now)
{
    const struct credit *credits[] = {
        &debt->request,         &debt->cap,         &debt->duty, &debt->extra, &debt->account_cap,
        &debt->account_request, &debt->account_duty};
    uint64_t last = max(debt->turn_until, now);
    for (size_t i = 0; i < sizeof credits / sizeof *credits; i++)
        last = max(last, free_at(credits[i], now));
    return last;
}

static void keep_greater(struct credit *kept, const struct credit *credit, uint64_t now)
{
    /* A credit with a rate of 0 never binds. */
    if (credit->rate && free_at(credit, now) > free_at(kept, now))
        *kept = *credit;
}

static struct debt *entry_of(struct debts *debts, uint64_t account, uint64_t now)
{
    struct debt *first = &debts->of[0];
    for (int i = 0; i < DEBTS_ACCOUNTS; i++) {
        struct debt *debt = &debts->of[i];
        if (debt->account == account)
            return debt;
        if (all_free_at(debt, now) < all_free_at(first, now))
            first = debt;
    }
    *first = (struct debt){.account = account};
    return first;
}

/* The idle time that the account had beyond the others in its lease group. All of them with work
 * make up for it, so it is worked off by each one's part of the clock. */
static struct credit extra_of(const struct scheduler_client *client, uint64_t now)
{
    const struct scheduler_lease_group *lease_group = client->lease_group;
    struct credit extra = {.at = now, .rate = PLAN_WHOLE};
    plan_credit_charge(&extra, saturating_sub(client->account_extra_ns, lease_group->extra_ns));
    if (lease_group->wants_count)
        extra.rate = PLAN_WHOLE / lease_group->wants_count;
    return extra;
}

/* The overrun is taken off the account's next turn, and each of the others has a turn before that.
 */
void debts_owe_turn(struct debt *debt, uint64_t overrun_ns, uint64_t others, uint64_t quantum_ns,
                    uint64_t now)
{
    debt->turn_ns = overrun_ns;
    if (overrun_ns)
        debt->turn_until = now + (others + 1) * max(quantum_ns, overrun_ns);
}

static struct debt debt_of(const struct scheduler_client *client, uint64_t quantum_ns, uint64_t now)
{
    const struct scheduler_account *account = client->accounts.of[0];
    struct debt debt = {.account = account->number};
    keep_greater(&debt.request, &client->request.credit, now);
    keep_greater(&debt.cap, &client->cap, now);
    keep_greater(&debt.duty, &client->duty, now);
    if (account->clients > 1)
        return debt;
    /* The account ends with its last client, and with it all that its clients owe together. */
    debt.extra = extra_of(client, now);
    keep_greater(&debt.account_request, &account->request.credit, now);
    keep_greater(&debt.account_cap, &account->cap, now);
    keep_greater(&debt.account_duty, &account->duty, now);
    debts_owe_turn(&debt, account->debt_ns, client->lease_group->wants_count, quantum_ns, now);
    return debt;
}

/* The client owes the same device time; or less, if its own rate works off less in the time that
 * is left. So its debt ends no later. */
static void owe_debt(struct credit *credit, const struct credit *kept, uint64_t now)
{
    struct credit at = *kept;
    plan_credit_settle(&at, now, 0);
    if (at.parts >= 0)
        return;
    plan_credit_settle(credit, now, INT64_MAX);
    uint64_t left = min(plan_credit_ready(&at) - now, PLAN_STRETCH_MAX);
    int64_t parts = -(int64_t)min((uint64_t)-at.parts, left * credit->rate);
    if (parts < credit->parts)
        credit->parts = parts;
}

static void inherit_debt(struct scheduler_client *client, const struct debt *debt, uint64_t now)
{
    owe_debt(&client->request.credit, &debt->request, now);
    if (client->cap.rate != PLAN_WHOLE)
        owe_debt(&client->cap, &debt->cap, now);
    if (client->duty.rate != PLAN_WHOLE)
        owe_debt(&client->duty, &debt->duty, now);
}

/* The account has its first client again. */
static void inherit_as_account(struct scheduler_client *client, const struct debt *debt,
                               uint64_t now)
{
    struct scheduler_account *account = client->accounts.of[0];
    struct credit extra = {.at = now, .rate = PLAN_WHOLE};
    if (account->request.credit.rate)
        owe_debt(&account->request.credit, &debt->account_request, now);
    if (account->cap.rate != PLAN_WHOLE)
        owe_debt(&account->cap, &debt->account_cap, now);
    if (account->duty.rate != PLAN_WHOLE)
        owe_debt(&account->duty, &debt->account_duty, now);
    owe_debt(&extra, &debt->extra, now);
    client->account_extra_ns =
        max(client->account_extra_ns,
            client->lease_group->extra_ns + (uint64_t)-extra.parts / PLAN_WHOLE);
    if (debt->turn_until > now)
        account->debt_ns = max(account->debt_ns, debt->turn_ns);
}

void debts_keep_of(struct debts *debts, const struct debt *debt, uint64_t spends,
                   const struct list *clients, uint64_t now)
{
    if (all_free_at(debt, now) == now)
        return;
    struct scheduler_client *other;
    LIST_FOR_EACH (other, clients, link)
        if (other->accounts.of[0]->number == debt->account && other->arrived > spends)
            inherit_debt(other, debt, now);
    struct debt *kept = entry_of(debts, debt->account, now);
    keep_greater(&kept->request, &debt->request, now);
    keep_greater(&kept->cap, &debt->cap, now);
    keep_greater(&kept->duty, &debt->duty, now);
    keep_greater(&kept->extra, &debt->extra, now);
    keep_greater(&kept->account_request, &debt->account_request, now);
    keep_greater(&kept->account_cap, &debt->account_cap, now);
    keep_greater(&kept->account_duty, &debt->account_duty, now);
    if (debt->turn_until > kept->turn_until) {
        kept->turn_ns = debt->turn_ns;
        kept->turn_until = debt->turn_until;
    }
    debts->changes++;
}

void debts_keep(struct debts *debts, const struct scheduler_client *client,
                const struct list *clients, uint64_t quantum_ns, uint64_t now)
{
    struct debt debt = debt_of(client, quantum_ns, now);
    bool ran = client->leases || client->charged_ns;
    /* It inherits nothing of itself: it arrived before it spent anything. */
    if (debt.account && ran)
        debts_keep_of(debts, &debt, client->spends, clients, now);
}

void debts_owe(const struct debts *debts, struct scheduler_client *client, uint64_t now)
{
    const struct scheduler_account *account = client->accounts.of[0];
    if (account->number == 0)
        return;
    for (const struct debt *debt = debts->of; debt != debts->of + DEBTS_ACCOUNTS; debt++) {
        if (debt->account != account->number)
            continue;
        inherit_debt(client, debt, now);
        if (account->clients == 1)
            inherit_as_account(client, debt, now);
    }
}

static void cut_credit(struct credit *credit, uint64_t now)
{
    credit->at = min(credit->at, now);
    credit->rate = min(credit->rate, PLAN_WHOLE);
    credit->parts =
        max(min(credit->parts, INT64_C(0)), -(int64_t)(PLAN_STRETCH_MAX * (PLAN_WHOLE - 1)));
}

void debts_give(struct debts *debts, const struct debts *from, uint64_t now)
{
    *debts = *from;
    for (struct debt *debt = debts->of; debt != debts->of + DEBTS_ACCOUNTS; debt++) {
        struct credit *credits[] = {
            &debt->request,         &debt->cap,         &debt->duty,        &debt->extra,
            &debt->account_request, &debt->account_cap, &debt->account_duty};
        for (size_t i = 0; i < sizeof credits / sizeof *credits; i++)
            cut_credit(credits[i], now);
        debt->turn_ns = min(debt->turn_ns, PLAN_STRETCH_MAX);
        debt->turn_until = min(debt->turn_until, now + PLAN_STRETCH_MAX);
    }
}
