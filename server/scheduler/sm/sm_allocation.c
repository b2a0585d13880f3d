/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/sm/sm_allocation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/list.h"
#include "common/util.h"
#include "common/messages.h"
#include "protocol.h"
#include "server/scheduler/sm/sm_cost.h"
#include "server/scheduler/sm/sm_overcommit.h"
#include "server/scheduler/sm/sm_packing.h"

/* ---- percentages ---- */

static uint32_t budget_of(const struct sm_allocation *allocation, uint32_t percentage)
{
    return (uint32_t)((uint64_t)allocation->total * percentage / PROTO_PERCENT_WHOLE);
}

uint32_t sm_allocation_sm_groups(const struct sm_allocation *allocation, uint32_t percentage,
                                 bool *remainder)
{
    const uint32_t budget = budget_of(allocation, percentage);
    const bool all = budget >= allocation->total - allocation->remainder;
    uint32_t sm_groups =
        all ? allocation->count : min(budget / allocation->sm_group_size, allocation->count - 1);
    if (percentage && sm_groups == 0)
        sm_groups = 1;
    *remainder = allocation->remainder &&
                 sm_groups * allocation->sm_group_size + allocation->remainder <= budget;
    return sm_groups;
}

bool sm_allocation_has_large(const struct sm_allocation *allocation, uint32_t percentage)
{
    const uint32_t more = allocation->last_size - allocation->sm_group_size;
    bool remainder;
    uint32_t sm_groups = sm_allocation_sm_groups(allocation, percentage, &remainder);
    return more && sm_groups &&
           sm_groups * allocation->sm_group_size + more <= budget_of(allocation, percentage);
}

uint32_t sm_allocation_max(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client)
{
    return client->max_sm_groups * allocation->sm_group_size +
           (client->max_large ? allocation->last_size - allocation->sm_group_size : 0) +
           (client->max_remainder ? allocation->remainder : 0);
}

/* The number of SM groups of a request. On a device with a single SM group nobody owns it. */
static uint32_t own_sm_groups(const struct sm_allocation *allocation, uint32_t request)
{
    bool remainder;
    return allocation->count == 1 && !allocation->remainder
               ? 0
               : sm_allocation_sm_groups(allocation, request, &remainder);
}

/* ---- where a client may run ---- */

/* Whether an account limits its clients to fewer SM groups than there are. */
static bool is_bounded(const struct sm_allocation *allocation,
                       const struct sm_allocation_account *account)
{
    return account && account->limit &&
           !sm_cost_is_all(allocation, account->max_sm_groups, account->max_remainder);
}

static void count_load(struct sm_allocation *allocation, const struct sm_allocation_client *client,
                       uint32_t change)
{
    /* A client that may have every SM group is no reason to prefer one of them to another. */
    if (sm_cost_has_all(allocation, client))
        return;
    for (uint32_t sm_group = 0; sm_group < allocation->count + (allocation->remainder ? 1 : 0);
         sm_group++)
        if (sm_group_set_has(&client->now, sm_group))
            allocation->load[sm_group] += change;
}

static void count_loads(struct sm_allocation *allocation,
                        const struct sm_allocation_account *account, uint32_t change)
{
    for (const struct sm_allocation_client *client = allocation->first; client;
         client = client->next)
        if (client->account == account)
            count_load(allocation, client, change);
}

static void note_change(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    if (client->named)
        return;
    client->named = true;
    queue_append(&allocation->names, &client->name_link);
}

static void forget_change(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    if (client->named)
        queue_remove(&allocation->names, &client->name_link);
    client->named = false;
}

struct sm_allocation_client *sm_allocation_next_changed(struct sm_allocation *allocation)
{
    struct sm_allocation_client *client =
        QUEUE_TAKE(&allocation->names, struct sm_allocation_client, name_link);
    if (client)
        client->named = false;
    return client;
}

/* The SM groups that others own and, having work, use: others than this client, or with NULL than
 * the account's clients. An account with work uses all that it owns. */
static void collect_taken(const struct sm_allocation *allocation,
                          const struct sm_allocation_account *account,
                          const struct sm_allocation_client *client, struct sm_group_set *set)
{
    memset(set, 0, sizeof *set);
    for (const struct sm_allocation_client *other = allocation->first; other; other = other->next) {
        bool together = account && other->account == account;
        if (other == client || !other->wants || (together && !client))
            continue;
        sm_group_set_join(set, &other->own);
        if (other->account && !together)
            sm_group_set_join(set, &other->account->own);
    }
}

/* The SM groups on which the client may not run now. */
static void collect_forbidden(const struct sm_allocation *allocation,
                              const struct sm_allocation_client *client, struct sm_group_set *set)
{
    struct sm_group_set beyond;
    collect_taken(allocation, client->account, client, set);
    if (!is_bounded(allocation, client->account))
        return;
    sm_group_set_all(&beyond);
    sm_group_set_cut(&beyond, &client->account->now);
    sm_group_set_join(set, &beyond);
}

bool sm_allocation_may_use(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client,
                           const struct sm_group_set *sm_groups)
{
    struct sm_group_set forbidden;
    collect_forbidden(allocation, client, &forbidden);
    return !sm_group_set_overlaps(&forbidden, sm_groups);
}

/* The SM groups that the client shares with nobody but clients of its account. */
static void find_home(const struct sm_allocation_client *client, struct sm_group_set *home)
{
    *home = (struct sm_group_set){{0}};
    if (client->account) {
        *home = client->account->own;
        sm_group_set_cut(home, &client->account->clients_own);
    }
    sm_group_set_join(home, &client->own);
}

bool sm_allocation_owns(const struct sm_allocation_client *client,
                        const struct sm_group_set *sm_groups)
{
    struct sm_group_set home, beyond = *sm_groups;
    find_home(client, &home);
    sm_group_set_cut(&beyond, &home);
    return !sm_group_set_is_empty(sm_groups) && sm_group_set_is_empty(&beyond);
}

bool sm_allocation_borrows(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client,
                           const struct sm_group_set *sm_groups)
{
    struct sm_group_set foreign;
    sm_allocation_foreign(allocation, client, &foreign);
    return sm_group_set_overlaps(&foreign, sm_groups);
}

void sm_allocation_foreign(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client, struct sm_group_set *foreign)
{
    struct sm_group_set home;
    find_home(client, &home);
    *foreign = allocation->owned;
    sm_group_set_cut(foreign, &home);
}

/* ---- settling ---- */

static bool has_remainder(const struct sm_allocation *allocation,
                          const struct sm_allocation_client *client)
{
    return allocation->remainder && sm_group_set_has(&client->now, allocation->count);
}

/* Whether the remainder is the client's, of all whose limits allow it. It is the smallest one's, of
 * whose multiprocessors it is the greatest part; of equals it is the one's that has it. A client
 * without a limit shares it with anybody. */
static bool may_have_remainder(const struct sm_allocation *allocation,
                               const struct sm_allocation_client *client)
{
    if (!client->max_remainder || sm_cost_has_all(allocation, client))
        return client->max_remainder;
    for (const struct sm_allocation_client *other = allocation->first; other; other = other->next) {
        if (other == client || !other->max_remainder || sm_cost_has_all(allocation, other))
            continue;
        if (other->max_sm_groups < client->max_sm_groups ||
            (other->max_sm_groups == client->max_sm_groups && has_remainder(allocation, other)))
            return false;
    }
    return true;
}

static void note_lent(const struct sm_allocation *allocation,
                      const struct sm_allocation_client *client)
{
    for (struct sm_allocation_client *other = allocation->first; other; other = other->next)
        if (other != client && sm_group_set_overlaps(&other->own, &client->now))
            other->lent = true;
    for (struct sm_allocation_account *account = allocation->accounts; account;
         account = account->next)
        if (account != client->account && sm_group_set_overlaps(&account->own, &client->now))
            account->lent = true;
}

/* Keeps the client's SM groups as far as they are still allowed, so that few partitions change,
 * and adds others up to its limit. */
static void settle_client(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    struct sm_group_set forbidden, set = client->now;
    struct sm_cost costs;
    collect_forbidden(allocation, client, &forbidden);
    /* -1: the client must not count as load on its own SM groups */
    count_load(allocation, client, UINT32_MAX);
    sm_cost_find(allocation, client->account, client, &costs);
    sm_cost_weigh_large(allocation, &costs, &forbidden, client->max_sm_groups, client->max_large);
    sm_group_set_join(&set, &client->own);
    sm_group_set_cut(&set, &forbidden);
    sm_cost_size(allocation, &costs, &set, &client->own, &forbidden, client->max_sm_groups);
    if (client->account)
        sm_cost_go_home(allocation, &costs, &set, client, &forbidden);
    if (allocation->remainder) {
        sm_group_set_remove(&set, allocation->count);
        if (may_have_remainder(allocation, client) &&
            !sm_group_set_has(&forbidden, allocation->count))
            sm_group_set_add(&set, allocation->count);
    }
    if (!sm_group_set_equals(&set, &client->now))
        note_change(allocation, client);
    client->now = set;
    count_load(allocation, client, 1);
    note_lent(allocation, client);
}

static void cut_client(struct sm_allocation *allocation, struct sm_allocation_client *client,
                       const struct sm_group_set *to)
{
    struct sm_group_set beyond = client->now;
    sm_group_set_cut(&beyond, to);
    if (sm_group_set_is_empty(&beyond))
        return;
    sm_group_set_cut(&client->now, &beyond);
    note_change(allocation, client);
}

/* Does for the SM groups of an account with a limit what settle_client does for a client's. Its
 * clients leave those that it has no more before any of them gets others. */
static void settle_account(struct sm_allocation *allocation, struct sm_allocation_account *account)
{
    struct sm_group_set taken, set = account->now, keep = account->own;
    struct sm_cost costs;
    struct sm_allocation_client *client;
    bool begins = sm_group_set_is_empty(&set);
    sm_group_set_join(&keep, &account->clients_own);
    collect_taken(allocation, account, NULL, &taken);
    count_loads(allocation, account, UINT32_MAX);
    sm_cost_find(allocation, account, NULL, &costs);
    sm_cost_weigh_large(allocation, &costs, &taken, account->max_sm_groups, account->max_large);
    for (client = allocation->first; client && begins; client = client->next)
        if (client->account == account)
            sm_group_set_join(&set, &client->now);
    sm_group_set_join(&set, &keep);
    sm_group_set_cut(&set, &taken);
    sm_cost_size(allocation, &costs, &set, &keep, &taken, account->max_sm_groups);
    if (allocation->remainder) {
        sm_group_set_remove(&set, allocation->count);
        if (account->max_remainder)
            sm_group_set_add(&set, allocation->count);
    }
    account->now = set;
    for (client = allocation->first; client; client = client->next)
        if (client->account == account)
            cut_client(allocation, client, &set);
    count_loads(allocation, account, 1);
    for (client = allocation->first; client; client = client->next)
        if (client->account == account)
            settle_client(allocation, client);
}

static bool has_its_max(const struct sm_allocation *allocation,
                        const struct sm_allocation_client *client)
{
    return sm_cost_whole_sm_groups(allocation, &client->now) == client->max_sm_groups &&
           (!client->max_remainder || sm_group_set_has(&client->now, allocation->count));
}

/* Whether the account has a limit and, since others took some, fewer SM groups than that. */
static bool is_short(const struct sm_allocation *allocation,
                     const struct sm_allocation_account *account)
{
    return is_bounded(allocation, account) &&
           sm_cost_whole_sm_groups(allocation, &account->now) < account->max_sm_groups;
}

/* To be called when a client came, left or has other limits: who had the remainder may lose it, and
 * another one gets it, whether it has work or not. */
static void pass_remainder_on(struct sm_allocation *allocation)
{
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next)
        if (has_remainder(allocation, client) && !may_have_remainder(allocation, client))
            settle_client(allocation, client);
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next)
        if (!has_remainder(allocation, client) && may_have_remainder(allocation, client))
            settle_client(allocation, client);
}

/* Offers free SM groups to the accounts and clients that have work and less than their limit. */
static void lend_rest(struct sm_allocation *allocation)
{
    for (struct sm_allocation_account *account = allocation->accounts; account;
         account = account->next)
        if (account->working && is_short(allocation, account))
            settle_account(allocation, account);
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next)
        if (client->wants && !has_its_max(allocation, client))
            settle_client(allocation, client);
}

/* Takes back what this client owns, or with NULL what the account owns: others on it move. */
static void take_back(struct sm_allocation *allocation, struct sm_allocation_account *account,
                      struct sm_allocation_client *client)
{
    bool *lent = client ? &client->lent : &account->lent;
    const struct sm_group_set *own = client ? &client->own : &account->own;
    if (!*lent || sm_group_set_is_empty(own))
        return;
    for (struct sm_allocation_account *other = allocation->accounts; other; other = other->next)
        if (other != account && is_bounded(allocation, other) &&
            sm_group_set_overlaps(&other->now, own))
            settle_account(allocation, other);
    for (struct sm_allocation_client *other = allocation->first; other; other = other->next)
        if (other != client && (client || other->account != account) &&
            sm_group_set_overlaps(&other->now, own))
            settle_client(allocation, other);
    *lent = false;
}

/* ---- requests ---- */

/* Own SM groups that requests need, and how many requests that are. */
struct demand {
    uint32_t requests, sm_groups;
};

static void add_demand(const struct sm_allocation *allocation, struct demand *demand,
                       uint32_t request)
{
    if (!request)
        return;
    demand->requests++;
    demand->sm_groups += own_sm_groups(allocation, request);
}

/* The greatest request for which there are SM groups beside those that others have. */
static uint32_t greatest_request(const struct sm_allocation *allocation, uint32_t taken)
{
    uint32_t fits = 0, not = PROTO_PERCENT_WHOLE + 1;
    while (fits + 1 < not ) {
        const uint32_t middle = fits + (not -fits) / 2;
        if (taken + own_sm_groups(allocation, middle) <= allocation->count)
            fits = middle;
        else
            not = middle;
    }
    return fits;
}

/* Whether the requests fit if the account (or NULL) had this request and limit, and the client (or
 * NULL) were in it with that request. */
static uint32_t check_fits(const struct sm_allocation *allocation,
                           const struct sm_allocation_account *account, uint32_t account_request,
                           uint32_t account_limit, const struct sm_allocation_client *client,
                           uint32_t request, struct error *why)
{
    struct demand beside = {0}, inside = {0};
    bool remainder;
    for (const struct sm_allocation_account *other = allocation->accounts; other;
         other = other->next)
        /* An account that the client leaves as its last one asks for nothing any more. */
        if (other != account && other->clients > (client && client->account == other))
            add_demand(allocation, &beside, other->request);
    for (const struct sm_allocation_client *other = allocation->first; other; other = other->next) {
        if (other == client)
            continue;
        bool together = account && other->account == account;
        if (together)
            add_demand(allocation, &inside, other->request);
        if (together ? !account_request : !other->account || !other->account->request)
            add_demand(allocation, &beside, other->request);
    }
    uint32_t asked = own_sm_groups(allocation, request);
    uint32_t room = account_request ? own_sm_groups(allocation, account_request)
                    : account_limit ? sm_allocation_sm_groups(allocation, account_limit, &remainder)
                                    : allocation->count;
    /* Of a user who was given nothing special the device's own sentence is the plainer one. */
    bool bounded = account_request || (account_limit && account_limit != PROTO_PERCENT_WHOLE);
    if (bounded && inside.sm_groups + asked > room)
        return sm_overcommit_explain_account(&(struct sm_overcommit){inside.requests,
                                                                     inside.sm_groups, asked, room,
                                                                     allocation->sm_group_size},
                                             why);
    if (account_request)
        asked = own_sm_groups(allocation, account_request);
    if (beside.sm_groups + asked <= allocation->count)
        return 0;
    return sm_overcommit_explain(&(struct sm_overcommit){beside.requests, beside.sm_groups, asked,
                                                         allocation->count,
                                                         allocation->sm_group_size},
                                 greatest_request(allocation, beside.sm_groups), why);
}

static uint32_t check_range(uint32_t request, uint32_t limit, struct error *why)
{
    return limit < 1 || limit > PROTO_PERCENT_WHOLE || request > limit
               ? error_set(why, MESSAGE(threads_range), request, limit, PROTO_PERCENT_WHOLE)
               : 0;
}

static uint32_t check_client(const struct sm_allocation *allocation,
                             const struct sm_allocation_account *account,
                             const struct sm_allocation_client *client, uint32_t request,
                             uint32_t limit, struct error *why)
{
    uint32_t error = check_range(request, limit, why);
    return error ? error
                 : check_fits(allocation, account, account ? account->request : 0,
                              account ? account->limit : 0, client, request, why);
}

static void release_own(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    struct sm_allocation_account *account = client->account;
    if (account)
        sm_group_set_cut(&account->clients_own, &client->own);
    if (!account || !account->request)
        sm_group_set_cut(&allocation->owned, &client->own);
}

/* Chooses the client's own SM groups: first those that it owns already, then the least loaded of
 * those without an owner, or without one in its account. */
static void choose_own(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    const struct sm_group_set nothing = {{0}};
    struct sm_allocation_account *account = client->account;
    struct sm_group_set owned, first;
    struct sm_cost costs;
    uint32_t sm_groups = own_sm_groups(allocation, client->request);
    release_own(allocation, client);
    if (account && account->request) {
        sm_group_set_all(&owned);
        sm_group_set_cut(&owned, &account->own);
        sm_group_set_join(&owned, &account->clients_own);
    } else {
        owned = allocation->owned;
    }
    sm_group_set_cut(&client->own, &owned);
    sm_cost_find(allocation, account, client, &costs);
    sm_cost_weigh_large(allocation, &costs, &owned, sm_groups,
                        sm_allocation_has_large(allocation, client->request));
    /* An account's SM groups change as little as they can. */
    first = owned;
    if (is_bounded(allocation, account)) {
        struct sm_group_set beyond;
        sm_group_set_all(&beyond);
        sm_group_set_cut(&beyond, &account->now);
        sm_group_set_join(&first, &beyond);
    }
    sm_cost_size(allocation, &costs, &client->own, &nothing, &first, sm_groups);
    sm_cost_size(allocation, &costs, &client->own, &nothing, &owned, sm_groups);
    if (account)
        sm_group_set_join(&account->clients_own, &client->own);
    if (!account || !account->request)
        sm_group_set_join(&allocation->owned, &client->own);
}

/* Chooses the account's own SM groups, those of its clients among them. Without a request, and
 * without clients, it owns none. */
static void choose_account_own(struct sm_allocation *allocation,
                               struct sm_allocation_account *account)
{
    struct sm_group_set owned, beyond;
    struct sm_cost costs;
    sm_group_set_cut(&allocation->owned, &account->own);
    sm_group_set_cut(&allocation->owned, &account->clients_own);
    uint32_t sm_groups = account->clients ? own_sm_groups(allocation, account->request) : 0;
    sm_group_set_join(&account->own, &account->clients_own);
    owned = beyond = allocation->owned;
    if (is_bounded(allocation, account) && !sm_group_set_is_empty(&account->now)) {
        sm_group_set_all(&beyond);
        sm_group_set_cut(&beyond, &account->now);
        sm_group_set_join(&beyond, &owned);
    }
    sm_cost_find(allocation, NULL, NULL, &costs);
    sm_cost_weigh_large(allocation, &costs, &owned, sm_groups,
                        sm_allocation_has_large(allocation, account->request));
    sm_cost_size(allocation, &costs, &account->own, &account->clients_own, &beyond, sm_groups);
    sm_cost_size(allocation, &costs, &account->own, &account->clients_own, &owned, sm_groups);
    sm_group_set_join(&allocation->owned, &account->own);
    if (!account->request)
        account->own = (struct sm_group_set){{0}};
}

/* ---- requests of time ---- */

/* Takes the clients that sm_packing_find moves to where it says. */
static void move_packed(struct sm_allocation *allocation)
{
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next) {
        if (!client->moves)
            continue;
        client->moves = false;
        if (sm_group_set_equals(&client->now, &client->move_to))
            continue;
        count_load(allocation, client, UINT32_MAX);
        client->now = client->move_to;
        count_load(allocation, client, 1);
        note_change(allocation, client);
    }
}

static void make_time_fit(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    if (allocation->time_binds && !sm_packing_fits(allocation, client) &&
        sm_packing_find(allocation, client))
        move_packed(allocation);
}

/* ---- accounts ---- */

static void enter_account(struct sm_allocation *allocation, struct sm_allocation_client *client,
                          struct sm_allocation_account *account)
{
    client->account = account;
    if (!account)
        return;
    account->working += client->wants;
    if (account->clients++)
        return;
    account->next = allocation->accounts;
    allocation->accounts = account;
    choose_account_own(allocation, account);
    account->lent = true; /* assumed: earlier clients may be on them */
}

static void leave_account(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    struct sm_allocation_account *account = client->account, **at = &allocation->accounts;
    release_own(allocation, client);
    client->account = NULL;
    if (!account)
        return;
    if (account->request) /* they stay the account's */
        client->own = (struct sm_group_set){{0}};
    account->working -= client->wants;
    if (--account->clients)
        return;
    choose_account_own(allocation, account);
    account->now = (struct sm_group_set){{0}};
    while (*at != account)
        at = &(*at)->next;
    *at = account->next;
}

static void find_max(const struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    const struct sm_allocation_account *account = client->account;
    client->max_sm_groups =
        sm_allocation_sm_groups(allocation, client->limit, &client->max_remainder);
    client->max_large = sm_allocation_has_large(allocation, client->limit);
    if (!is_bounded(allocation, account))
        return;
    if (account->max_sm_groups < client->max_sm_groups)
        client->max_large = account->max_large;
    else if (account->max_sm_groups == client->max_sm_groups)
        client->max_large = client->max_large && account->max_large;
    client->max_sm_groups = min(client->max_sm_groups, account->max_sm_groups);
    client->max_remainder = client->max_remainder && account->max_remainder;
}

uint32_t sm_allocation_account_set(struct sm_allocation *allocation,
                                   struct sm_allocation_account *account, uint32_t request,
                                   uint32_t limit, struct error *why)
{
    uint32_t error = check_range(request, limit, why);
    if (!error && account->clients)
        error = check_fits(allocation, account, request, limit, NULL, 0, why);
    if (error)
        return error;
    account->request = request;
    account->limit = limit;
    account->max_sm_groups = sm_allocation_sm_groups(allocation, limit, &account->max_remainder);
    account->max_large = sm_allocation_has_large(allocation, limit);
    if (!account->clients)
        return 0;
    count_loads(allocation, account, UINT32_MAX);
    choose_account_own(allocation, account);
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next)
        if (client->account == account)
            find_max(allocation, client);
    count_loads(allocation, account, 1);
    account->lent = true;
    if (account->working)
        take_back(allocation, account, NULL);
    if (is_bounded(allocation, account))
        settle_account(allocation, account);
    else
        account->now = (struct sm_group_set){{0}};
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next)
        if (client->account == account)
            settle_client(allocation, client);
    pass_remainder_on(allocation);
    lend_rest(allocation);
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next)
        if (client->account == account)
            make_time_fit(allocation, client);
    return 0;
}

/* ---- clients ---- */

void sm_allocation_bind_time(struct sm_allocation *allocation, bool binds)
{
    allocation->time_binds = binds;
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next)
        make_time_fit(allocation, client);
}

/* To be called when a client came, or has another request, limit or account. */
static void apply_limits(struct sm_allocation *allocation, struct sm_allocation_client *client,
                         uint32_t request, uint32_t limit)
{
    struct sm_allocation_account *account = client->account;
    count_load(allocation, client, UINT32_MAX);
    client->request = request;
    client->limit = limit;
    find_max(allocation, client);
    choose_own(allocation, client);
    count_load(allocation, client, 1);
    client->lent = true; /* assumed: an earlier client may be on them */
    if (account && account->working)
        take_back(allocation, account, NULL);
    if (client->wants)
        take_back(allocation, account, client);
    if (is_bounded(allocation, account))
        settle_account(allocation, account);
    settle_client(allocation, client);
    pass_remainder_on(allocation);
    lend_rest(allocation);
    make_time_fit(allocation, client);
}

int sm_allocation_open(struct sm_allocation *allocation, uint32_t count, uint32_t sm_group_size,
                       uint32_t rest)
{
    const bool large = rest >= sm_group_size;
    if (count == 0 || sm_group_size == 0 || count > SM_GROUPS_MAX - (rest ? 1 : 0))
        return -EINVAL;
    memset(allocation, 0, sizeof *allocation);
    allocation->count = count + large;
    allocation->sm_group_size = sm_group_size;
    allocation->last_size = large ? rest : sm_group_size;
    allocation->remainder = large ? 0 : rest;
    allocation->total = count * sm_group_size + rest;
    return 0;
}

uint32_t sm_allocation_add(struct sm_allocation *allocation, struct sm_allocation_client *client,
                           struct sm_allocation_account *account, uint32_t request, uint32_t limit,
                           struct error *why)
{
    uint32_t error = check_client(allocation, account, client, request, limit, why);
    if (error)
        return error;
    *client = (struct sm_allocation_client){
        .present = true, .time_request = client->time_request, .previous = allocation->last};
    *(allocation->last ? &allocation->last->next : &allocation->first) = client;
    allocation->last = client;
    enter_account(allocation, client, account);
    apply_limits(allocation, client, request, limit);
    return 0;
}

uint32_t sm_allocation_update(struct sm_allocation *allocation, struct sm_allocation_client *client,
                              uint32_t request, uint32_t limit, struct error *why)
{
    uint32_t error = check_client(allocation, client->account, client, request, limit, why);
    if (!error)
        apply_limits(allocation, client, request, limit);
    return error;
}

uint32_t sm_allocation_move(struct sm_allocation *allocation, struct sm_allocation_client *client,
                            struct sm_allocation_account *account, struct error *why)
{
    uint32_t error = account == client->account ? 0
                                                : check_client(allocation, account, client,
                                                               client->request, client->limit, why);
    if (error || account == client->account)
        return error;
    leave_account(allocation, client);
    enter_account(allocation, client, account);
    apply_limits(allocation, client, client->request, client->limit);
    return 0;
}

void sm_allocation_remove(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    if (!client->present)
        return;
    count_load(allocation, client, UINT32_MAX);
    forget_change(allocation, client);
    *(client->next ? &client->next->previous : &allocation->last) = client->previous;
    *(client->previous ? &client->previous->next : &allocation->first) = client->next;
    client->present = false;
    leave_account(allocation, client);
    pass_remainder_on(allocation);
    if (client->wants)
        lend_rest(allocation);
}

void sm_allocation_wants(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    struct sm_allocation_account *account = client->account;
    if (client->wants)
        return;
    client->wants = true;
    if (account && account->working++ == 0)
        take_back(allocation, account, NULL);
    take_back(allocation, account, client);
    if (is_short(allocation, account))
        settle_account(allocation, account);
    if (!has_its_max(allocation, client) || (account && account->request))
        settle_client(allocation, client);
}

void sm_allocation_idle(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    struct sm_allocation_account *account = client->account;
    if (!client->wants)
        return;
    client->wants = false;
    bool last = account && --account->working == 0 && !sm_group_set_is_empty(&account->own);
    if (last || !sm_group_set_is_empty(&client->own))
        lend_rest(allocation);
}
