/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/account.h"

#include "common/util.h"
#include "server/scheduler/scheduler.h"

void account_open(struct scheduler_account *account, uint64_t number, const char *name,
                  uint64_t now)
{
    *account = (struct scheduler_account){.number = number,
                                          .name = name,
                                          .time_limit = PLAN_WHOLE,
                                          .request = {.credit = {.at = now}, .paused_since = now},
                                          .cap = {.at = now, .rate = PLAN_WHOLE},
                                          .duty = {.at = now, .rate = PLAN_WHOLE}};
}

void account_set_rates(struct scheduler_account *account, bool strict)
{
    account->request.credit.rate = (uint32_t)saturating_sub(account->time_request, account->own);
    account->cap.rate = strict && account->time_request ? PLAN_WHOLE : account->time_limit;
}

void account_settle(const struct plan *plan, struct scheduler_account *account, uint64_t now)
{
    claim_settle(plan, &account->request, now);
    plan_cap_settle(&account->cap, now, plan_burst(plan, account->cap.rate));
}

uint64_t account_next_ticket(struct kept_place *kept, uint64_t *tickets, uint64_t now)
{
    uint64_t ticket = kept->ticket && now < kept->until ? kept->ticket : ++*tickets;
    kept->ticket = 0;
    return ticket;
}

void account_note(const struct plan *plan, struct scheduler_client *client, uint64_t *tickets,
                  uint64_t now)
{
    struct scheduler_account *account = client->accounts.of[0];
    struct account_part *had = &client->part;
    bool busy = client->wants || client->leased, own = client->limits.request;
    struct account_part has = {
        .wants = client->wants,
        .shares = busy && !own,
        .own = busy ? client->limits.request : 0,
    };
    claim_set_busy(&client->request, busy, now);
    if (has.wants == had->wants && has.shares == had->shares && has.own == had->own)
        return;
    account_settle(plan, account, now);
    if (has.wants && !account->wants)
        account->ticket = account_next_ticket(&account->kept, tickets, now);
    account->wants += (uint32_t)has.wants - (uint32_t)had->wants;
    account->sharers += (uint32_t)has.shares - (uint32_t)had->shares;
    account->own += has.own - had->own;
    claim_set_busy(&account->request, account->sharers, now);
    account->request.credit.rate = (uint32_t)saturating_sub(account->time_request, account->own);
    *had = has;
}

bool account_has_request(const struct scheduler_client *client)
{
    return client->limits.request || client->accounts.of[0]->time_request;
}

struct claim *account_claim(struct scheduler_client *client)
{
    struct scheduler_account *account = client->accounts.of[0];
    if (client->limits.request)
        return &client->request;
    return account->time_request ? &account->request : NULL;
}
