/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/sm/sm_packing.h"

#include "common/util.h"
#include "protocol.h"
#include "server/scheduler/sm/sm_cost.h"

/* The search is under a lock that the worker's submitter takes, too: this is a millisecond. */
enum { ARRANGEMENTS_MAX = 2000, MOVERS_MAX = 64, NO_BIN = SM_GROUPS_MAX };

/* SM groups whose clients are one lease group. */
struct bin {
    struct sm_group_set set; /* of the clients that stay */
    uint32_t sm_groups;      /* whole SM groups that it has, with those that it gets */
    uint32_t time;           /* the sum of the requests, in hundredths of a per cent */
};

struct search {
    struct sm_allocation *allocation;
    struct bin bins[SM_GROUPS_MAX + 1];
    uint32_t bin_count;
    struct sm_group_set free; /* SM groups of no bin and of no owner */
    uint32_t free_count;
    struct sm_allocation_client *movers[MOVERS_MAX]; /* the largest first */
    uint32_t mover_count;
    uint32_t arrangements;
};

/* The part of the time that the client adds to a bin. */
static uint32_t time_of(const struct search *search, const struct sm_allocation_client *client,
                        uint32_t bin)
{
    const struct sm_allocation_account *account = client->account;
    if (!account || !account->time_request)
        return client->time_request;
    for (const struct sm_allocation_client *other = search->allocation->first; other;
         other = other->next)
        if (other != client && other->account == account && other->bin == bin)
            return 0;
    return account->time_request;
}

/* ---- who stays ---- */

static void join_bins(struct search *search, const struct sm_group_set *sm_groups)
{
    struct sm_group_set joined = *sm_groups;
    for (uint32_t i = 0; i < search->bin_count;) {
        if (sm_group_set_overlaps(&search->bins[i].set, sm_groups)) {
            sm_group_set_join(&joined, &search->bins[i].set);
            search->bins[i] = search->bins[--search->bin_count];
        } else {
            i++;
        }
    }
    search->bins[search->bin_count++] = (struct bin){.set = joined};
}

static uint32_t bin_of(const struct search *search, const struct sm_allocation_client *client)
{
    for (uint32_t i = 0; i < search->bin_count; i++)
        if (sm_group_set_overlaps(&search->bins[i].set, &client->now))
            return i;
    return NO_BIN; /* it can run nowhere now */
}

static void find_bins(struct search *search)
{
    struct sm_allocation_client *client;
    for (client = search->allocation->first; client; client = client->next) {
        client->bin = NO_BIN;
        if (!client->moves && !sm_group_set_is_empty(&client->now))
            join_bins(search, &client->now);
    }
    for (client = search->allocation->first; client; client = client->next) {
        uint32_t bin = client->moves ? NO_BIN : bin_of(search, client);
        if (bin == NO_BIN)
            continue;
        search->bins[bin].time += time_of(search, client, bin);
        client->bin = bin;
    }
}

bool sm_packing_fits(struct sm_allocation *allocation, const struct sm_allocation_client *client)
{
    struct search search = {.allocation = allocation};
    find_bins(&search);
    return client->bin == NO_BIN || search.bins[client->bin].time <= PROTO_PERCENT_WHOLE;
}

/* ---- who moves ---- */

static bool may_move(const struct sm_allocation *allocation,
                     const struct sm_allocation_client *client)
{
    const struct sm_allocation_account *account = client->account;
    bool bound =
        account && (account->request || (account->limit && account->limit < PROTO_PERCENT_WHOLE));
    return !bound && !client->request && !sm_cost_has_all(allocation, client) &&
           !sm_group_set_is_empty(&client->now);
}

static void add_mover(struct search *search, struct sm_allocation_client *client)
{
    uint32_t at = search->mover_count++;
    for (; at && search->movers[at - 1]->max_sm_groups < client->max_sm_groups; at--)
        search->movers[at] = search->movers[at - 1];
    search->movers[at] = client;
}

static bool place_rest(struct search *search, uint32_t at)
{
    if (at == search->mover_count)
        return true;
    struct sm_allocation_client *client = search->movers[at];
    for (uint32_t i = 0; i <= search->bin_count && i < SM_GROUPS_MAX; i++) {
        struct bin *bin = &search->bins[i];
        bool begins = i == search->bin_count;
        if (begins)
            *bin = (struct bin){.time = 0};
        uint32_t time = time_of(search, client, i);
        uint32_t grows = (uint32_t)saturating_sub(client->max_sm_groups, bin->sm_groups);
        if (bin->time + time > PROTO_PERCENT_WHOLE || grows > search->free_count)
            continue;
        if (search->arrangements++ >= ARRANGEMENTS_MAX)
            return false;
        bin->time += time;
        bin->sm_groups += grows;
        search->free_count -= grows;
        search->bin_count += begins;
        client->bin = i;
        if (place_rest(search, at + 1))
            return true;
        client->bin = NO_BIN;
        search->bin_count -= begins;
        search->free_count += grows;
        bin->sm_groups -= grows;
        bin->time -= time;
        if (begins)
            break;
    }
    return false;
}

/* ---- from bins to SM groups ---- */

/* Gives each bin as many SM groups as it needs, those first that most of its movers are on. */
static void fill_bin(struct search *search, uint32_t number)
{
    struct bin *bin = &search->bins[number];
    struct sm_group_set nothing = {{0}}, others;
    struct sm_cost cost;
    sm_group_set_all(&others);
    sm_group_set_cut(&others, &search->free);
    for (uint32_t sm_group = 0; sm_group < search->allocation->count; sm_group++) {
        cost.of[sm_group] = search->mover_count;
        for (uint32_t i = 0; i < search->mover_count; i++)
            cost.of[sm_group] -= search->movers[i]->bin == number &&
                                 sm_group_set_has(&search->movers[i]->now, sm_group);
    }
    sm_cost_size(search->allocation, &cost, &bin->set, &nothing, &others, bin->sm_groups);
    sm_group_set_cut(&search->free, &bin->set);
}

static void choose_sets(struct search *search)
{
    const struct sm_group_set nothing = {{0}};
    const struct sm_allocation *allocation = search->allocation;
    struct sm_cost cost, weighed;
    for (uint32_t i = 0; i < search->bin_count; i++)
        fill_bin(search, i);
    sm_cost_find(allocation, NULL, NULL, &cost);
    for (uint32_t i = 0; i < search->mover_count; i++)
        for (uint32_t sm_group = 0; sm_group < allocation->count; sm_group++)
            cost.of[sm_group] -=
                SM_COST_CLIENT * sm_group_set_has(&search->movers[i]->now, sm_group);
    for (uint32_t i = 0; i < search->mover_count; i++) {
        struct sm_allocation_client *client = search->movers[i];
        struct sm_group_set beyond;
        sm_group_set_all(&beyond);
        sm_group_set_cut(&beyond, &search->bins[client->bin].set);
        bool remainder = sm_group_set_has(&client->now, allocation->count);
        client->move_to = client->now;
        sm_group_set_cut(&client->move_to, &beyond);
        weighed = cost;
        sm_cost_weigh_large(allocation, &weighed, &beyond, client->max_sm_groups,
                            client->max_large);
        sm_cost_size(allocation, &weighed, &client->move_to, &nothing, &beyond,
                     client->max_sm_groups);
        for (uint32_t sm_group = 0; sm_group < allocation->count; sm_group++)
            cost.of[sm_group] += SM_COST_CLIENT * sm_group_set_has(&client->move_to, sm_group);
        if (allocation->remainder && remainder)
            sm_group_set_add(&client->move_to, allocation->count);
    }
}

/* Looks for places for the clients that move. */
static bool find_places(struct sm_allocation *allocation)
{
    struct search search = {.allocation = allocation};
    struct sm_group_set owned = allocation->owned;
    find_bins(&search);
    for (uint32_t sm_group = 0; sm_group < allocation->count; sm_group++)
        sm_group_set_add(&search.free, sm_group);
    if (allocation->remainder)
        sm_group_set_add(&owned, allocation->count);
    sm_group_set_cut(&search.free, &owned);
    for (uint32_t i = 0; i < search.bin_count; i++) {
        sm_group_set_cut(&search.free, &search.bins[i].set);
        sm_group_set_cut(&search.bins[i].set, &owned);
        search.bins[i].sm_groups = sm_group_set_count(&search.bins[i].set);
    }
    search.free_count = sm_group_set_count(&search.free);
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next) {
        if (!client->moves)
            continue;
        if (search.mover_count == MOVERS_MAX)
            return false;
        add_mover(&search, client);
    }
    if (!place_rest(&search, 0))
        return false;
    choose_sets(&search);
    return true;
}

static bool find_with_one(struct sm_allocation *allocation,
                          const struct sm_allocation_client *client, bool with_work)
{
    struct sm_allocation_client *other;
    for (other = allocation->first; other; other = other->next) {
        if (other == client || other->wants != with_work || !may_move(allocation, other))
            continue;
        other->moves = true;
        if (find_places(allocation))
            return true;
        other->moves = false;
    }
    return false;
}

bool sm_packing_find(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    struct sm_allocation_client *other;
    if (!may_move(allocation, client))
        return false;
    client->moves = true;
    if (find_places(allocation) || find_with_one(allocation, client, false) ||
        find_with_one(allocation, client, true))
        return true;
    for (other = allocation->first; other; other = other->next)
        other->moves = may_move(allocation, other);
    if (find_places(allocation))
        return true;
    for (other = allocation->first; other; other = other->next)
        other->moves = false;
    return false;
}
