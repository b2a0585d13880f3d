/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/share.h"

#include <string.h>

enum { WORDS = SHARE_ATOMS_MAX / 64 };

/* ---- sets ---- */

void share_set_add(struct share_set *set, uint32_t atom)
{
    set->bits[atom / 64] |= UINT64_C(1) << (atom % 64);
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
