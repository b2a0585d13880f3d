/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sm_group_set: a set of SM groups, by number. Pure; the caller owns the set and serialises its
 * calls. A set of zeros is empty.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SM_SM_GROUP_SET_H
#define GPUSHARE_SERVER_SCHEDULER_SM_SM_GROUP_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { SM_GROUPS_MAX = 256 };

struct sm_group_set {
    uint64_t bits[SM_GROUPS_MAX / 64];
};

static inline bool sm_group_set_has(const struct sm_group_set *set, uint32_t sm_group)
{
    return set->bits[sm_group / 64] >> (sm_group % 64) & 1;
}

void sm_group_set_add(struct sm_group_set *set, uint32_t sm_group);    /* below SM_GROUPS_MAX */
void sm_group_set_remove(struct sm_group_set *set, uint32_t sm_group); /* below SM_GROUPS_MAX */
void sm_group_set_all(struct sm_group_set *set); /* all SM_GROUPS_MAX SM groups */
bool sm_group_set_is_empty(const struct sm_group_set *set);
bool sm_group_set_overlaps(const struct sm_group_set *a, const struct sm_group_set *b);
void sm_group_set_join(struct sm_group_set *set, const struct sm_group_set *other); /* or */
uint32_t sm_group_set_count(const struct sm_group_set *set);
void sm_group_set_cut(struct sm_group_set *set, const struct sm_group_set *other); /* and not */
bool sm_group_set_equals(const struct sm_group_set *a, const struct sm_group_set *b);

#endif
