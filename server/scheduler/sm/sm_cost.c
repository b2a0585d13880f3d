/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/sm/sm_cost.h"

bool sm_cost_is_all(const struct sm_allocation *allocation, uint32_t sm_groups, bool remainder)
{
    return sm_groups == allocation->count && (remainder || !allocation->remainder);
}

bool sm_cost_has_all(const struct sm_allocation *allocation,
                     const struct sm_allocation_client *client)
{
    return sm_cost_is_all(allocation, client->max_sm_groups, client->max_remainder);
}

uint32_t sm_cost_whole_sm_groups(const struct sm_allocation *allocation,
                                 const struct sm_group_set *set)
{
    uint32_t sm_groups = sm_group_set_count(set);
    return allocation->remainder && sm_group_set_has(set, allocation->count) ? sm_groups - 1
                                                                             : sm_groups;
}

void sm_cost_find(const struct sm_allocation *allocation,
                  const struct sm_allocation_account *account,
                  const struct sm_allocation_client *client, struct sm_cost *cost)
{
    const struct sm_allocation_client *other;
    for (uint32_t sm_group = 0; sm_group < allocation->count; sm_group++) {
        bool own = account && sm_group_set_has(&account->own, sm_group);
        cost->of[sm_group] = SM_COST_LARGE; /* sm_cost_weigh_large may take it off */
        cost->of[sm_group] +=
            own ? 0 : SM_COST_CLIENT * allocation->load[sm_group] + SM_COST_FOREIGN;
        for (other = allocation->first; own && other; other = other->next)
            if (other != client && other->account == account && other->wants &&
                !sm_cost_has_all(allocation, other) && sm_group_set_has(&other->now, sm_group))
                cost->of[sm_group] += SM_COST_CLIENT;
    }
}

void sm_cost_weigh_large(const struct sm_allocation *allocation, struct sm_cost *cost,
                         const struct sm_group_set *forbidden, uint32_t sm_groups, bool fits)
{
    const uint32_t last = allocation->count - 1;
    uint32_t unloaded = 0;
    if (allocation->last_size == allocation->sm_group_size)
        return;
    for (uint32_t sm_group = 0; sm_group <= last; sm_group++)
        unloaded += !sm_group_set_has(forbidden, sm_group) && cost->of[sm_group] < SM_COST_CLIENT;
    if (fits)
        cost->of[last] -= SM_COST_LARGE;
    else
        cost->of[last] += unloaded < sm_groups ? SM_COST_TOO_LARGE : SM_COST_LARGE;
}

/* The SM group of the least cost that is in neither set. Of equals it takes the first, so that
 * clients with equal limits end up on equal sets. allocation->count: there is none. */
static uint32_t least_loaded(const struct sm_allocation *allocation, const struct sm_cost *cost,
                             const struct sm_group_set *a, const struct sm_group_set *b)
{
    uint32_t best = allocation->count;
    for (uint32_t sm_group = 0; sm_group < allocation->count; sm_group++)
        if (!sm_group_set_has(a, sm_group) && !sm_group_set_has(b, sm_group) &&
            (best == allocation->count || cost->of[sm_group] < cost->of[best]))
            best = sm_group;
    return best;
}

/* The SM group of the set, but not of `keep`, that has the greatest cost. Of equals it takes the
 * last. allocation->count: there is none. */
static uint32_t most_loaded(const struct sm_allocation *allocation, const struct sm_cost *cost,
                            const struct sm_group_set *set, const struct sm_group_set *keep)
{
    uint32_t worst = allocation->count;
    for (uint32_t sm_group = allocation->count; sm_group-- > 0;)
        if (sm_group_set_has(set, sm_group) && !sm_group_set_has(keep, sm_group) &&
            (worst == allocation->count || cost->of[sm_group] > cost->of[worst]))
            worst = sm_group;
    return worst;
}

void sm_cost_size(const struct sm_allocation *allocation, const struct sm_cost *cost,
                  struct sm_group_set *set, const struct sm_group_set *keep,
                  const struct sm_group_set *forbidden, uint32_t sm_groups)
{
    uint32_t at;
    while (sm_cost_whole_sm_groups(allocation, set) > sm_groups &&
           (at = most_loaded(allocation, cost, set, keep)) != allocation->count)
        sm_group_set_remove(set, at);
    while (sm_cost_whole_sm_groups(allocation, set) < sm_groups &&
           (at = least_loaded(allocation, cost, set, forbidden)) != allocation->count)
        sm_group_set_add(set, at);
}

void sm_cost_go_home(const struct sm_allocation *allocation, const struct sm_cost *cost,
                     struct sm_group_set *set, const struct sm_allocation_client *client,
                     const struct sm_group_set *forbidden)
{
    struct sm_group_set elsewhere;
    sm_group_set_all(&elsewhere);
    sm_group_set_cut(&elsewhere, &client->account->own);
    sm_group_set_join(&elsewhere, forbidden);
    for (;;) {
        uint32_t best = least_loaded(allocation, cost, set, &elsewhere);
        uint32_t worst = most_loaded(allocation, cost, set, &client->own);
        if (best == allocation->count || worst == allocation->count ||
            cost->of[best] >= cost->of[worst])
            return;
        sm_group_set_remove(set, worst);
        sm_group_set_add(set, best);
    }
}
