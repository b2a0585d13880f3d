/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/sm_allocation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/list.h"
#include "server/scheduler/plan.h"
#include "common/messages.h"
#include "server/scheduler/overcommit.h"

/* ---- percentages ---- */

uint32_t sm_allocation_multiprocessors(const struct sm_allocation *allocation,
                                       const struct sm_group_set *set)
{
    uint32_t sm_groups = sm_group_set_count(set);
    if (allocation->remainder && sm_group_set_has(set, allocation->count))
        return (sm_groups - 1) * allocation->sm_group_size + allocation->remainder;
    return sm_groups * allocation->sm_group_size;
}

uint32_t sm_allocation_sm_groups(const struct sm_allocation *allocation, uint32_t percentage,
                                 bool *remainder)
{
    uint32_t budget = (uint32_t)((uint64_t)allocation->total * percentage / PLAN_WHOLE);
    uint32_t sm_groups = budget / allocation->sm_group_size;
    if (sm_groups > allocation->count)
        sm_groups = allocation->count;
    if (percentage && sm_groups == 0)
        sm_groups = 1;
    *remainder = allocation->remainder &&
                 sm_groups * allocation->sm_group_size + allocation->remainder <= budget;
    return sm_groups;
}

uint32_t sm_allocation_max(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client)
{
    return client->max_sm_groups * allocation->sm_group_size +
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

static bool has_all(const struct sm_allocation *allocation,
                    const struct sm_allocation_client *client)
{
    return client->max_sm_groups == allocation->count &&
           (client->max_remainder || !allocation->remainder);
}

static void count_load(struct sm_allocation *allocation, const struct sm_allocation_client *client,
                       uint32_t change)
{
    /* A client that may have every SM group is no reason to prefer one of them to another. */
    if (has_all(allocation, client))
        return;
    for (uint32_t sm_group = 0; sm_group < allocation->count + (allocation->remainder ? 1 : 0);
         sm_group++)
        if (sm_group_set_has(&client->now, sm_group))
            allocation->load[sm_group] += change;
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

/* The SM groups that other clients own and, having work, use. */
static void collect_taken(const struct sm_allocation *allocation,
                          const struct sm_allocation_client *client, struct sm_group_set *set)
{
    memset(set, 0, sizeof *set);
    for (const struct sm_allocation_client *other = allocation->first; other; other = other->next)
        if (other != client && other->wants)
            sm_group_set_join(set, &other->own);
}

bool sm_allocation_may_use(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client,
                           const struct sm_group_set *sm_groups)
{
    struct sm_group_set others;
    collect_taken(allocation, client, &others);
    return !sm_group_set_overlaps(&others, sm_groups);
}

bool sm_allocation_borrows(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client,
                           const struct sm_group_set *sm_groups)
{
    struct sm_group_set others = allocation->owned;
    sm_group_set_cut(&others, &client->own);
    return sm_group_set_overlaps(&others, sm_groups);
}

/* The number of whole SM groups of a set. */
static uint32_t whole_sm_groups(const struct sm_allocation *allocation,
                                const struct sm_group_set *set)
{
    uint32_t sm_groups = sm_group_set_count(set);
    return allocation->remainder && sm_group_set_has(set, allocation->count) ? sm_groups - 1
                                                                             : sm_groups;
}

/* The least loaded SM group that is in neither set. Of equals it takes the first, so that
 * clients with equal limits end up on equal sets. allocation->count: there is none. */
static uint32_t least_loaded(const struct sm_allocation *allocation, const struct sm_group_set *a,
                             const struct sm_group_set *b)
{
    uint32_t best = allocation->count;
    for (uint32_t sm_group = 0; sm_group < allocation->count; sm_group++)
        if (!sm_group_set_has(a, sm_group) && !sm_group_set_has(b, sm_group) &&
            (best == allocation->count || allocation->load[sm_group] < allocation->load[best]))
            best = sm_group;
    return best;
}

/* Drops the most loaded SM groups first, so that a client whose limit fell makes room where it
 * is scarce. Of equals it drops the last. */
static void drop_sm_groups(const struct sm_allocation *allocation, struct sm_group_set *set,
                           const struct sm_group_set *keep, uint32_t most)
{
    while (whole_sm_groups(allocation, set) > most) {
        uint32_t worst = allocation->count;
        for (uint32_t sm_group = allocation->count; sm_group-- > 0;)
            if (sm_group_set_has(set, sm_group) && !sm_group_set_has(keep, sm_group) &&
                (worst == allocation->count ||
                 allocation->load[sm_group] > allocation->load[worst]))
                worst = sm_group;
        if (worst == allocation->count)
            break;
        set->bits[worst / 64] &= ~(UINT64_C(1) << (worst % 64));
    }
}

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
    if (!client->max_remainder || has_all(allocation, client))
        return client->max_remainder;
    for (const struct sm_allocation_client *other = allocation->first; other; other = other->next) {
        if (other == client || !other->max_remainder || has_all(allocation, other))
            continue;
        if (other->max_sm_groups < client->max_sm_groups ||
            (other->max_sm_groups == client->max_sm_groups && has_remainder(allocation, other)))
            return false;
    }
    return true;
}

/* Keeps the client's SM groups as far as they are still allowed, so that few partitions change,
 * and adds others up to its limit. */
static void settle_client(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    struct sm_group_set others, set = client->now, last = {{0}};
    collect_taken(allocation, client, &others);
    /* -1: the client must not count as load on its own SM groups */
    count_load(allocation, client, UINT32_MAX);
    sm_group_set_join(&set, &client->own);
    sm_group_set_cut(&set, &others);
    drop_sm_groups(allocation, &set, &client->own, client->max_sm_groups);
    while (whole_sm_groups(allocation, &set) < client->max_sm_groups) {
        uint32_t sm_group = least_loaded(allocation, &set, &others);
        if (sm_group == allocation->count)
            break;
        sm_group_set_add(&set, sm_group);
    }
    if (allocation->remainder) {
        sm_group_set_add(&last, allocation->count);
        sm_group_set_cut(&set, &last);
        if (may_have_remainder(allocation, client) && !sm_group_set_overlaps(&last, &others))
            sm_group_set_join(&set, &last);
    }
    if (!sm_group_set_equals(&set, &client->now))
        note_change(allocation, client);
    client->now = set;
    count_load(allocation, client, 1);
    for (struct sm_allocation_client *other = allocation->first; other; other = other->next)
        if (other != client && sm_group_set_overlaps(&other->own, &set))
            other->lent = true;
}

static bool has_its_max(const struct sm_allocation *allocation,
                        const struct sm_allocation_client *client)
{
    return whole_sm_groups(allocation, &client->now) == client->max_sm_groups &&
           (!client->max_remainder || sm_group_set_has(&client->now, allocation->count));
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

/* Offers free SM groups to the clients that have work and less than their limit. */
static void lend_rest(struct sm_allocation *allocation)
{
    for (struct sm_allocation_client *client = allocation->first; client; client = client->next)
        if (client->wants && !has_its_max(allocation, client))
            settle_client(allocation, client);
}

/* Takes the client's own SM groups back: other clients on them move. */
static void take_back(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    for (struct sm_allocation_client *other = allocation->first; other; other = other->next)
        if (other != client && sm_group_set_overlaps(&other->now, &client->own))
            settle_client(allocation, other);
    client->lent = false;
}

/* ---- clients ---- */

static uint32_t check_fits(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client, uint32_t request,
                           uint32_t limit, struct error *why)
{
    uint32_t others = 0, owned = 0;
    if (limit < 1 || limit > PLAN_WHOLE || request > limit) {
        return error_set(why, MESSAGE(threads_range), request, limit, PLAN_WHOLE);
    }
    for (const struct sm_allocation_client *other = allocation->first; other; other = other->next)
        if (other != client && other->request) {
            others++;
            owned += whole_sm_groups(allocation, &other->own);
        }
    uint32_t asked = own_sm_groups(allocation, request);
    if (owned + asked <= allocation->count)
        return 0;
    return overcommit_explain_threads(others, owned, asked, allocation->count,
                                      allocation->sm_group_size, why);
}

/* Chooses the client's own SM groups: first those that it owns already, then the least loaded of
 * those without an owner. */
static void choose_own(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    const struct sm_group_set nothing = {{0}};
    uint32_t sm_groups = own_sm_groups(allocation, client->request);
    sm_group_set_cut(&allocation->owned, &client->own);
    drop_sm_groups(allocation, &client->own, &nothing, sm_groups);
    while (sm_group_set_count(&client->own) < sm_groups)
        sm_group_set_add(&client->own, least_loaded(allocation, &client->own, &allocation->owned));
    sm_group_set_join(&allocation->owned, &client->own);
}

static void apply_limits(struct sm_allocation *allocation, struct sm_allocation_client *client,
                         uint32_t request, uint32_t limit)
{
    count_load(allocation, client, UINT32_MAX);
    client->request = request;
    client->limit = limit;
    client->max_sm_groups = sm_allocation_sm_groups(allocation, limit, &client->max_remainder);
    choose_own(allocation, client);
    count_load(allocation, client, 1);
    client->lent = true; /* assumed: an earlier client may be on them */
    if (client->wants)
        take_back(allocation, client);
    settle_client(allocation, client);
    pass_remainder_on(allocation);
    lend_rest(allocation);
}

int sm_allocation_open(struct sm_allocation *allocation, uint32_t count, uint32_t sm_group_size,
                       uint32_t remainder)
{
    if (count == 0 || sm_group_size == 0 || remainder >= sm_group_size ||
        count > SM_GROUPS_MAX - (remainder ? 1 : 0))
        return -EINVAL;
    memset(allocation, 0, sizeof *allocation);
    allocation->count = count;
    allocation->sm_group_size = sm_group_size;
    allocation->remainder = remainder;
    allocation->total = count * sm_group_size + remainder;
    return 0;
}

uint32_t sm_allocation_add(struct sm_allocation *allocation, struct sm_allocation_client *client,
                           uint32_t request, uint32_t limit, struct error *why)
{
    uint32_t error = check_fits(allocation, client, request, limit, why);
    if (error)
        return error;
    *client = (struct sm_allocation_client){.present = true, .previous = allocation->last};
    *(allocation->last ? &allocation->last->next : &allocation->first) = client;
    allocation->last = client;
    apply_limits(allocation, client, request, limit);
    return 0;
}

uint32_t sm_allocation_update(struct sm_allocation *allocation, struct sm_allocation_client *client,
                              uint32_t request, uint32_t limit, struct error *why)
{
    uint32_t error = check_fits(allocation, client, request, limit, why);
    if (!error)
        apply_limits(allocation, client, request, limit);
    return error;
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
    sm_group_set_cut(&allocation->owned, &client->own);
    pass_remainder_on(allocation);
    if (client->wants)
        lend_rest(allocation);
}

void sm_allocation_wants(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    if (client->wants)
        return;
    client->wants = true;
    if (client->lent && !sm_group_set_is_empty(&client->own))
        take_back(allocation, client);
    if (!has_its_max(allocation, client))
        settle_client(allocation, client);
}

void sm_allocation_idle(struct sm_allocation *allocation, struct sm_allocation_client *client)
{
    if (!client->wants)
        return;
    client->wants = false;
    if (!sm_group_set_is_empty(&client->own))
        lend_rest(allocation);
}
