/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/account.h"

#include "common/util.h"
#include "server/scheduler/scheduler.h"

/* With none, one of 70 random mixes got less than the promise (test_promise.c); with one, none of
 * 3,000; the second is a reserve. To save up three leases whether they are owed or not was too
 * much: 5 of 4,000 mixes were beyond their limits. */
#define OWED_LEASES 2

void account_open(struct scheduler_account *account, uint64_t number, const char *name,
                  uint64_t now)
{
    *account = (struct scheduler_account){.number = number,
                                          .name = name,
                                          .time_limit = PLAN_WHOLE,
                                          .request = {.credit = {.at = now}, .paused_since = now},
                                          .cap = {.at = now, .rate = PLAN_WHOLE},
                                          .duty = {.at = now, .rate = PLAN_WHOLE}};
    list_init(&account->pausing);
}

void account_set_rates(struct scheduler_account *account, bool strict)
{
    account->request.credit.rate = (uint32_t)saturating_sub(account->time_request, account->own);
    account->cap.rate = strict && account->time_request ? PLAN_WHOLE : account->time_limit;
}

static void count_own(struct scheduler_account *account, struct scheduler_client *client,
                      uint32_t own)
{
    account->own += own - client->part.own;
    client->part.own = own;
    account->request.credit.rate = (uint32_t)saturating_sub(account->time_request, account->own);
}

/* The client that pauses and whose request stops counting first, and when. */
static struct scheduler_client *
first_to_lapse(const struct plan *plan, const struct scheduler_account *account, uint64_t *at)
{
    struct scheduler_client *client, *first = NULL;
    *at = PLAN_NEVER;
    LIST_FOR_EACH (client, &account->pausing, pausing_link) {
        uint64_t lapsed_at = claim_lapsed_at(plan, &client->request, 0);
        if (lapsed_at < *at) {
            *at = lapsed_at;
            first = client;
        }
    }
    return first;
}

uint64_t account_grows_at(const struct plan *plan, const struct scheduler_account *account)
{
    uint64_t at;
    first_to_lapse(plan, account, &at);
    return at;
}

int64_t account_owed_most(const struct plan *plan)
{
    return (int64_t)(plan->lease_ns * PLAN_WHOLE) * OWED_LEASES;
}

int64_t account_cap_most(const struct plan *plan, uint32_t rate)
{
    return plan_burst(plan, rate) + account_owed_most(plan);
}

void account_settle(const struct plan *plan, struct scheduler_account *account, uint64_t now)
{
    struct scheduler_client *client;
    uint64_t at;
    while (account->request.credit.at < now &&
           (client = first_to_lapse(plan, account, &at)) != NULL && at <= now) {
        claim_settle(plan, &account->request, at);
        list_remove(&client->pausing_link);
        count_own(account, client, 0);
    }
    claim_settle(plan, &account->request, now);
    plan_cap_settle(&account->cap, now, account_cap_most(plan, account->cap.rate));
}

uint64_t account_next_ticket(struct kept_place *kept, uint64_t *tickets, uint64_t now)
{
    uint64_t ticket = kept->ticket && now < kept->until ? kept->ticket : ++*tickets;
    kept->ticket = 0;
    return ticket;
}

/* Whether the client's request counts in its account while it pauses. */
static bool counts_in_pause(const struct scheduler_account *account,
                            const struct scheduler_client *client)
{
    return account->time_request && client->limits.request && client->request.credit.parts > 0;
}

void account_note(const struct plan *plan, struct scheduler_client *client, uint64_t *tickets,
                  uint64_t now)
{
    struct scheduler_account *account = client->accounts.of[0];
    struct account_part *had = &client->part;
    bool busy = client->wants || client->leased, own = client->limits.request;
    bool pauses = !busy && counts_in_pause(account, client);
    struct account_part has = {
        .wants = client->wants,
        .shares = busy && !own,
        .own = busy || pauses ? client->limits.request : 0,
    };
    claim_set_busy(&client->request, busy, now);
    list_remove(&client->pausing_link);
    if (pauses)
        list_append(&account->pausing, &client->pausing_link);
    if (has.wants == had->wants && has.shares == had->shares && has.own == had->own)
        return;
    account_settle(plan, account, now);
    if (has.wants && !account->wants)
        account->ticket = account_next_ticket(&account->kept, tickets, now);
    account->wants += (uint32_t)has.wants - (uint32_t)had->wants;
    account->sharers += (uint32_t)has.shares - (uint32_t)had->shares;
    claim_set_busy(&account->request, account->sharers, now);
    count_own(account, client, has.own);
    *had = has;
}

void account_leave(const struct plan *plan, struct scheduler_client *client, uint64_t now)
{
    struct scheduler_account *account = client->accounts.of[0];
    account_settle(plan, account, now);
    list_remove(&client->pausing_link);
    count_own(account, client, 0);
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
