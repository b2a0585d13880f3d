/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/share.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/list.h"
#include "server/scheduler/plan.h"
#include "common/messages.h"
#include "server/scheduler/overcommit.h"

enum { WORDS = SHARE_SM_GROUPS_MAX / 64 };

/* ---- sets ---- */

void share_set_add(struct share_set *set, uint32_t sm_group)
{
    set->bits[sm_group / 64] |= UINT64_C(1) << (sm_group % 64);
}

void share_set_all(struct share_set *set)
{
    memset(set, 0xff, sizeof *set);
}

bool share_set_empty(const struct share_set *set)
{
    for (int i = 0; i < WORDS; i++)
        if (set->bits[i])
            return false;
    return true;
}

bool share_set_overlap(const struct share_set *a, const struct share_set *b)
{
    for (int i = 0; i < WORDS; i++)
        if (a->bits[i] & b->bits[i])
            return true;
    return false;
}

void share_set_join(struct share_set *set, const struct share_set *other)
{
    for (int i = 0; i < WORDS; i++)
        set->bits[i] |= other->bits[i];
}

uint32_t share_set_count(const struct share_set *set)
{
    uint32_t count = 0;
    for (int i = 0; i < WORDS; i++)
        count += (uint32_t)__builtin_popcountll(set->bits[i]);
    return count;
}

void share_set_cut(struct share_set *set, const struct share_set *other)
{
    for (int i = 0; i < WORDS; i++)
        set->bits[i] &= ~other->bits[i];
}

bool share_set_same(const struct share_set *a, const struct share_set *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- percentages ---- */

uint32_t share_multiprocessors(const struct share *share, const struct share_set *set)
{
    uint32_t sm_groups = share_set_count(set);
    if (share->remainder && share_set_has(set, share->count))
        return (sm_groups - 1) * share->sm_group_size + share->remainder;
    return sm_groups * share->sm_group_size;
}

uint32_t share_sm_groups(const struct share *share, uint32_t percentage, bool *remainder)
{
    uint32_t budget = (uint32_t)((uint64_t)share->total * percentage / PLAN_WHOLE);
    uint32_t sm_groups = budget / share->sm_group_size;
    if (sm_groups > share->count)
        sm_groups = share->count;
    if (percentage && sm_groups == 0)
        sm_groups = 1;
    *remainder = share->remainder && sm_groups * share->sm_group_size + share->remainder <= budget;
    return sm_groups;
}

uint32_t share_most(const struct share *share, const struct share_client *client)
{
    return client->most * share->sm_group_size + (client->most_remainder ? share->remainder : 0);
}

/* The number of SM groups of a request. On a device with a single SM group nobody owns it. */
static uint32_t own_sm_groups(const struct share *share, uint32_t request)
{
    bool remainder;
    return share->count == 1 && !share->remainder ? 0 : share_sm_groups(share, request, &remainder);
}

/* ---- where a client may run ---- */

static bool has_all(const struct share *share, const struct share_client *client)
{
    return client->most == share->count && (client->most_remainder || !share->remainder);
}

static void count_load(struct share *share, const struct share_client *client, uint32_t change)
{
    /* A client that may have every SM group is no reason to prefer one of them to another. */
    if (has_all(share, client))
        return;
    for (uint32_t sm_group = 0; sm_group < share->count + (share->remainder ? 1 : 0); sm_group++)
        if (share_set_has(&client->now, sm_group))
            share->load[sm_group] += change;
}

static void name(struct share *share, struct share_client *client)
{
    if (client->named)
        return;
    client->named = true;
    queue_append(&share->names, &client->name_link);
}

static void forget_name(struct share *share, struct share_client *client)
{
    if (client->named)
        queue_remove(&share->names, &client->name_link);
    client->named = false;
}

struct share_client *share_named(struct share *share)
{
    struct share_client *client = QUEUE_TAKE(&share->names, struct share_client, name_link);
    if (client)
        client->named = false;
    return client;
}

/* The SM groups that other clients own and, having work, use. */
static void taken(const struct share *share, const struct share_client *client,
                  struct share_set *set)
{
    memset(set, 0, sizeof *set);
    for (const struct share_client *other = share->first; other; other = other->next)
        if (other != client && other->wants)
            share_set_join(set, &other->own);
}

bool share_may_use(const struct share *share, const struct share_client *client,
                   const struct share_set *sm_groups)
{
    struct share_set others;
    taken(share, client, &others);
    return !share_set_overlap(&others, sm_groups);
}

bool share_borrows(const struct share *share, const struct share_client *client,
                   const struct share_set *sm_groups)
{
    struct share_set others = share->owned;
    share_set_cut(&others, &client->own);
    return share_set_overlap(&others, sm_groups);
}

/* The number of whole SM groups of a set. */
static uint32_t whole_sm_groups(const struct share *share, const struct share_set *set)
{
    uint32_t sm_groups = share_set_count(set);
    return share->remainder && share_set_has(set, share->count) ? sm_groups - 1 : sm_groups;
}

/* The least loaded SM group that is in neither set. Of equals it takes the first, so that
 * clients with equal limits end up on equal sets. share->count: there is none. */
static uint32_t least_loaded(const struct share *share, const struct share_set *a,
                             const struct share_set *b)
{
    uint32_t best = share->count;
    for (uint32_t sm_group = 0; sm_group < share->count; sm_group++)
        if (!share_set_has(a, sm_group) && !share_set_has(b, sm_group) &&
            (best == share->count || share->load[sm_group] < share->load[best]))
            best = sm_group;
    return best;
}

/* Drops the most loaded SM groups first, so that a client whose limit fell makes room where it
 * is scarce. Of equals it drops the last. */
static void drop_sm_groups(const struct share *share, struct share_set *set,
                           const struct share_set *keep, uint32_t most)
{
    while (whole_sm_groups(share, set) > most) {
        uint32_t worst = share->count;
        for (uint32_t sm_group = share->count; sm_group-- > 0;)
            if (share_set_has(set, sm_group) && !share_set_has(keep, sm_group) &&
                (worst == share->count || share->load[sm_group] > share->load[worst]))
                worst = sm_group;
        if (worst == share->count)
            break;
        set->bits[worst / 64] &= ~(UINT64_C(1) << (worst % 64));
    }
}

/* Keeps the client's SM groups as far as they are still allowed, so that few partitions change,
 * and adds others up to its limit. */
static void settle(struct share *share, struct share_client *client)
{
    struct share_set others, set = client->now, last = {{0}};
    taken(share, client, &others);
    /* -1: the client must not count as load on its own SM groups */
    count_load(share, client, UINT32_MAX);
    share_set_join(&set, &client->own);
    share_set_cut(&set, &others);
    drop_sm_groups(share, &set, &client->own, client->most);
    while (whole_sm_groups(share, &set) < client->most) {
        uint32_t sm_group = least_loaded(share, &set, &others);
        if (sm_group == share->count)
            break;
        share_set_add(&set, sm_group);
    }
    if (share->remainder) {
        share_set_add(&last, share->count);
        share_set_cut(&set, &last);
        bool alone = share->load[share->count] == 0 || has_all(share, client);
        if (client->most_remainder && alone && !share_set_overlap(&last, &others))
            share_set_join(&set, &last);
    }
    if (!share_set_same(&set, &client->now))
        name(share, client);
    client->now = set;
    count_load(share, client, 1);
    for (struct share_client *other = share->first; other; other = other->next)
        if (other != client && share_set_overlap(&other->own, &set))
            other->lent = true;
}

static bool has_its_most(const struct share *share, const struct share_client *client)
{
    return whole_sm_groups(share, &client->now) == client->most &&
           (!client->most_remainder || share_set_has(&client->now, share->count));
}

/* Offers free SM groups to the clients that have work and less than their limit. */
static void lend(struct share *share)
{
    for (struct share_client *client = share->first; client; client = client->next)
        if (client->wants && !has_its_most(share, client))
            settle(share, client);
}

/* Takes the client's own SM groups back: other clients on them move. */
static void take_back(struct share *share, struct share_client *client)
{
    for (struct share_client *other = share->first; other; other = other->next)
        if (other != client && share_set_overlap(&other->now, &client->own))
            settle(share, other);
    client->lent = false;
}

/* ---- clients ---- */

static uint32_t check(const struct share *share, const struct share_client *client,
                      uint32_t request, uint32_t limit, struct error *why)
{
    uint32_t others = 0, owned = 0;
    if (limit < 1 || limit > PLAN_WHOLE || request > limit) {
        return error_set(why, MESSAGE(threads_range), request, limit, PLAN_WHOLE);
    }
    for (const struct share_client *other = share->first; other; other = other->next)
        if (other != client && other->request) {
            others++;
            owned += whole_sm_groups(share, &other->own);
        }
    uint32_t asked = own_sm_groups(share, request);
    if (owned + asked <= share->count)
        return 0;
    return overcommit_explain_threads(others, owned, asked, share->count, share->sm_group_size,
                                      why);
}

/* Chooses the client's own SM groups: first those that it owns already, then the least loaded of
 * those without an owner. */
static void choose_own(struct share *share, struct share_client *client)
{
    const struct share_set nothing = {{0}};
    uint32_t sm_groups = own_sm_groups(share, client->request);
    share_set_cut(&share->owned, &client->own);
    drop_sm_groups(share, &client->own, &nothing, sm_groups);
    while (share_set_count(&client->own) < sm_groups)
        share_set_add(&client->own, least_loaded(share, &client->own, &share->owned));
    share_set_join(&share->owned, &client->own);
}

static void apply(struct share *share, struct share_client *client, uint32_t request,
                  uint32_t limit)
{
    count_load(share, client, UINT32_MAX);
    client->request = request;
    client->limit = limit;
    client->most = share_sm_groups(share, limit, &client->most_remainder);
    choose_own(share, client);
    count_load(share, client, 1);
    client->lent = true; /* assumed: an earlier client may be on them */
    if (client->wants)
        take_back(share, client);
    settle(share, client);
    lend(share);
}

int share_open(struct share *share, uint32_t count, uint32_t sm_group_size, uint32_t remainder)
{
    if (count == 0 || sm_group_size == 0 || remainder >= sm_group_size ||
        count > SHARE_SM_GROUPS_MAX - (remainder ? 1 : 0))
        return -EINVAL;
    memset(share, 0, sizeof *share);
    share->count = count;
    share->sm_group_size = sm_group_size;
    share->remainder = remainder;
    share->total = count * sm_group_size + remainder;
    return 0;
}

uint32_t share_add(struct share *share, struct share_client *client, uint32_t request,
                   uint32_t limit, struct error *why)
{
    uint32_t error = check(share, client, request, limit, why);
    if (error)
        return error;
    *client = (struct share_client){.present = true, .previous = share->last};
    *(share->last ? &share->last->next : &share->first) = client;
    share->last = client;
    apply(share, client, request, limit);
    return 0;
}

uint32_t share_update(struct share *share, struct share_client *client, uint32_t request,
                      uint32_t limit, struct error *why)
{
    uint32_t error = check(share, client, request, limit, why);
    if (!error)
        apply(share, client, request, limit);
    return error;
}

void share_remove(struct share *share, struct share_client *client)
{
    if (!client->present)
        return;
    count_load(share, client, UINT32_MAX);
    forget_name(share, client);
    *(client->next ? &client->next->previous : &share->last) = client->previous;
    *(client->previous ? &client->previous->next : &share->first) = client->next;
    client->present = false;
    share_set_cut(&share->owned, &client->own);
    if (client->wants)
        lend(share);
}

void share_wants(struct share *share, struct share_client *client)
{
    if (client->wants)
        return;
    client->wants = true;
    if (client->lent && !share_set_empty(&client->own))
        take_back(share, client);
    if (!has_its_most(share, client))
        settle(share, client);
}

void share_idle(struct share *share, struct share_client *client)
{
    if (!client->wants)
        return;
    client->wants = false;
    if (!share_set_empty(&client->own))
        lend(share);
}
