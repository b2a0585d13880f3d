/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/quota.h"

#include <assert.h>
#include <stddef.h>

#include "common/util.h"
#include "server/supervisor/account/bill.h"

void quota_open(struct quota *quota, const char *name, uint64_t limit, struct quota *parent)
{
    *quota = (struct quota){.name = name, .limit = limit, .parent = parent};
}

/* The amount that a quota takes up in the quotas above it and in its totals. */
static uint64_t quota_claim(const struct quota *quota)
{
    return max(quota->used, quota->guarantee);
}

/* A limit may have been lowered below what is used: then nothing is left, rather than very much. */
static uint64_t quota_room(const struct quota *quota)
{
    return quota->used < quota->limit ? quota->limit - quota->used : 0;
}

static const struct quota *find_full_above(const struct quota *quota, uint64_t more)
{
    for (const struct quota *q = quota->parent; q; q = q->parent)
        if (more > quota_room(q))
            return q;
    return NULL;
}

/* The quota that lacks room for more of what this one holds, or NULL. Totals are asked first:
 * they are the nearest to the client, and its user can do something about them. */
static const struct quota *find_full(const struct quota *quota, uint64_t more)
{
    for (const struct quota_link *link = quota->totals; link; link = link->next)
        if (more > quota_room(link->total))
            return link->total;
    return find_full_above(quota, more);
}

static void take_less(struct quota *quota, uint64_t less)
{
    assert(quota->used >= less);
    quota->used -= less;
}

/* Tells the quotas above and the totals that this quota holds more or less. */
static void charge_carry(struct quota *quota, uint64_t more, uint64_t less)
{
    for (struct quota_link *link = quota->totals; link; link = link->next) {
        link->total->used += more;
        take_less(link->total, less);
    }
    for (struct quota *q = quota->parent; q; q = q->parent) {
        q->used += more;
        take_less(q, less);
    }
}

void quota_close(struct quota *quota)
{
    assert(quota->used == 0);
    assert(!quota->totals);
    charge_carry(quota, 0, quota->guarantee);
    quota->guarantee = 0;
    quota->parent = NULL;
}

void quota_join(struct quota *quota, struct quota_link *link, struct quota *total)
{
    *link = (struct quota_link){.total = total, .next = quota->totals};
    quota->totals = link;
    total->used += quota_claim(quota);
}

void quota_leave(struct quota *quota, struct quota_link *link)
{
    struct quota_link **at = &quota->totals;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    take_less(link->total, quota_claim(quota));
    *link = (struct quota_link){0};
}

static int culprit_report(const struct quota *full, const struct quota **culprit)
{
    if (culprit)
        *culprit = full;
    return QUOTA_OVER;
}

/* How much more the quota would hold with this guarantee. */
static uint64_t more_with(const struct quota *quota, uint64_t amount)
{
    uint64_t before = quota_claim(quota), after = max(quota->used, amount);
    return after > before ? after - before : 0;
}

static void set_guarantee(struct quota *quota, uint64_t amount)
{
    uint64_t before = quota_claim(quota), after = max(quota->used, amount);
    charge_carry(quota, after > before ? after - before : 0, after < before ? before - after : 0);
    quota->guarantee = amount;
}

int quota_guarantee(struct quota *quota, uint64_t amount, const struct quota **culprit)
{
    uint64_t more = more_with(quota, amount);
    const struct quota *full = more ? find_full(quota, more) : NULL;
    if (full)
        return culprit_report(full, culprit);
    set_guarantee(quota, amount);
    return 0;
}

int quota_restore(struct quota *quota, uint64_t amount)
{
    uint64_t more = more_with(quota, amount);
    if (more && find_full_above(quota, more))
        return QUOTA_OVER;
    set_guarantee(quota, amount);
    return 0;
}

int quota_charge(struct quota *quota, struct charge *charge, uint64_t amount,
                 const struct quota **culprit)
{
    assert(!charge->quota);
    if (amount > quota_room(quota))
        return culprit_report(quota, culprit);
    uint64_t more = max(quota->used + amount, quota->guarantee) - quota_claim(quota);
    const struct quota *full = find_full(quota, more);
    if (full)
        return culprit_report(full, culprit);
    charge_carry(quota, more, 0);
    quota->used += amount;
    bill_level_set(quota->level, quota->used);
    *charge = (struct charge){.quota = quota, .amount = amount};
    return 0;
}

void quota_charge_again(struct quota *quota, struct charge *charge, uint64_t amount)
{
    assert(!charge->quota);
    charge_carry(quota, max(quota->used + amount, quota->guarantee) - quota_claim(quota), 0);
    quota->used += amount;
    bill_level_set(quota->level, quota->used);
    *charge = (struct charge){.quota = quota, .amount = amount};
}

/* Of the room that others leave, and of what the quota holds already without using it. */
static uint64_t left_beside(uint64_t own, uint64_t others, uint64_t unclaimed)
{
    return others > UINT64_MAX - unclaimed ? own : min(own, others + unclaimed);
}

uint64_t quota_left(const struct quota *quota)
{
    uint64_t others = UINT64_MAX;
    for (const struct quota_link *link = quota->totals; link; link = link->next)
        others = min(others, quota_room(link->total));
    for (const struct quota *q = quota->parent; q; q = q->parent)
        others = min(others, quota_room(q));
    return left_beside(quota_room(quota), others, quota_claim(quota) - quota->used);
}

uint64_t quota_gives_up(const struct quota *quota, uint64_t idle)
{
    assert(idle <= quota->used);
    return quota_claim(quota) - max(quota->used - idle, quota->guarantee);
}

/* The room in a total or in a quota above when this one and the others have given up. */
static uint64_t left_in(const struct quota *total, uint64_t given_up, quota_others *others,
                        const void *context)
{
    const uint64_t theirs = others ? others(context, total) : 0;
    return saturating_sub(total->limit, saturating_sub(total->used - given_up, theirs));
}

uint64_t quota_left_in_totals(const struct quota *quota, uint64_t idle, quota_others *others,
                              const void *context)
{
    const uint64_t used = quota->used - idle, given_up = quota_gives_up(quota, idle);
    uint64_t left = UINT64_MAX;
    for (const struct quota_link *link = quota->totals; link; link = link->next)
        left = min(left, left_in(link->total, given_up, others, context));
    return left_beside(saturating_sub(quota->limit, used), left,
                       quota_claim(quota) - given_up - used);
}

uint64_t quota_left_above(const struct quota *quota, uint64_t idle, quota_others *others,
                          const void *context)
{
    const uint64_t used = quota->used - idle, given_up = quota_gives_up(quota, idle);
    uint64_t left = UINT64_MAX;
    for (const struct quota *q = quota->parent; q; q = q->parent)
        left = min(left, left_in(q, given_up, others, context));
    return left_beside(UINT64_MAX, left, quota_claim(quota) - given_up - used);
}

void quota_return(struct charge *charge)
{
    struct quota *quota = charge->quota;
    if (quota) {
        uint64_t before = quota_claim(quota);
        take_less(quota, charge->amount);
        charge_carry(quota, 0, before - quota_claim(quota));
        bill_level_set(quota->level, quota->used);
    }
    *charge = CHARGE_NONE;
}
