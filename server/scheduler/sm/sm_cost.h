/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sm_cost: what speaks against each SM group where one has to be chosen, and sets that are chosen
 * by it.
 *
 * The cost of an SM group is the number of clients with a limit that are on it. For an account's
 * own SM groups only those of its clients that have work count, because others leave when one of
 * them has work. Of equals the account's own are the cheaper ones.
 *
 * A last SM group that is larger than the others is the cheapest of its equals for a share that has
 * room for it. For any other share it is the dearest of its equals if the share could be on SM
 * groups without a load alone, and else the dearest of all.
 *
 * Pure; it reads the allocation. One thread at a time, as for sm_allocation.h.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SM_SM_COST_H
#define GPUSHARE_SERVER_SCHEDULER_SM_SM_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "server/scheduler/sm/sm_allocation.h"

enum {
    SM_COST_CLIENT = 4,  /* a client on the SM group */
    SM_COST_FOREIGN = 2, /* the SM group is not the account's own */
    SM_COST_LARGE = 1,   /* it is the larger one, and the share has no room for it, or else has */
    SM_COST_TOO_LARGE = 1 << 30
};

struct sm_cost {
    uint32_t of[SM_GROUPS_MAX]; /* of each whole SM group */
};

/* Finds the costs for a choice by a client of this account; NULL for no account, and for a choice
 * by the account itself. The load of who chooses has been taken out of the allocation's. O(clients
 * x SM groups). */
void sm_cost_find(const struct sm_allocation *allocation,
                  const struct sm_allocation_account *account,
                  const struct sm_allocation_client *client, struct sm_cost *cost);

/* Weighs a last SM group that is larger than the others, for a choice of so many whole SM groups of
 * which none is forbidden. fits: the share that they are chosen for has room for it. To be called
 * once, after sm_cost_find. */
void sm_cost_weigh_large(const struct sm_allocation *allocation, struct sm_cost *cost,
                         const struct sm_group_set *forbidden, uint32_t sm_groups, bool fits);

/* Brings a set to this many whole SM groups, as far as there are any that are not forbidden. Drops
 * those of the greatest cost, of equals the last, and none of `keep`. Adds those of the least cost,
 * of equals the first, so that clients with equal limits end up on equal sets. */
void sm_cost_size(const struct sm_allocation *allocation, const struct sm_cost *cost,
                  struct sm_group_set *set, const struct sm_group_set *keep,
                  const struct sm_group_set *forbidden, uint32_t sm_groups);

/* Exchanges SM groups of a client's set for cheaper ones that its account owns; the client has an
 * account. */
void sm_cost_go_home(const struct sm_allocation *allocation, const struct sm_cost *cost,
                     struct sm_group_set *set, const struct sm_allocation_client *client,
                     const struct sm_group_set *forbidden);

/* The number of whole SM groups of a set. */
uint32_t sm_cost_whole_sm_groups(const struct sm_allocation *allocation,
                                 const struct sm_group_set *set);

/* Whether these are all whole SM groups, and the remainder if there is one; and whether the
 * client's limits allow all. */
bool sm_cost_is_all(const struct sm_allocation *allocation, uint32_t sm_groups, bool remainder);
bool sm_cost_has_all(const struct sm_allocation *allocation,
                     const struct sm_allocation_client *client);

#endif
