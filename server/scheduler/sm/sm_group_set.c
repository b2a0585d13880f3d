/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/sm/sm_group_set.h"

#include <string.h>

enum { WORDS = SM_GROUPS_MAX / 64 };

void sm_group_set_add(struct sm_group_set *set, uint32_t sm_group)
{
    set->bits[sm_group / 64] |= UINT64_C(1) << (sm_group % 64);
}

void sm_group_set_remove(struct sm_group_set *set, uint32_t sm_group)
{
    set->bits[sm_group / 64] &= ~(UINT64_C(1) << (sm_group % 64));
}

void sm_group_set_all(struct sm_group_set *set)
{
    memset(set, 0xff, sizeof *set);
}

bool sm_group_set_is_empty(const struct sm_group_set *set)
{
    for (int i = 0; i < WORDS; i++)
        if (set->bits[i])
            return false;
    return true;
}

bool sm_group_set_overlaps(const struct sm_group_set *a, const struct sm_group_set *b)
{
    for (int i = 0; i < WORDS; i++)
        if (a->bits[i] & b->bits[i])
            return true;
    return false;
}

void sm_group_set_join(struct sm_group_set *set, const struct sm_group_set *other)
{
    for (int i = 0; i < WORDS; i++)
        set->bits[i] |= other->bits[i];
}

uint32_t sm_group_set_count(const struct sm_group_set *set)
{
    uint32_t count = 0;
    for (int i = 0; i < WORDS; i++)
        count += (uint32_t)__builtin_popcountll(set->bits[i]);
    return count;
}

void sm_group_set_cut(struct sm_group_set *set, const struct sm_group_set *other)
{
    for (int i = 0; i < WORDS; i++)
        set->bits[i] &= ~other->bits[i];
}

bool sm_group_set_equals(const struct sm_group_set *a, const struct sm_group_set *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
