/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * total: what all clients of one user, or of one group's members, have together.
 *
 * A total is a quota of a resource on one device, or of one that the server has. It exists while
 * it has members, which are clients' quotas of that resource. The caller, which knows the
 * configuration, sets its limit. One thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_TOTAL_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_TOTAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/limits/allowance.h"
#include "server/supervisor/account/quota.h"

/* A control group has no totals of memory, only limits (total_override.h). */
enum total_kind { TOTAL_USER, TOTAL_GROUP, TOTAL_CGROUP };

#define TOTAL_OF_SERVER UINT32_MAX /* instead of a device's index */

/* The list is singly linked: a zeroed struct totals is an empty one, and a total leaves it when its
 * last member does, which is rare. */
struct total {
    struct quota quota; /* must stay the first member */
    struct total *next;
    enum total_kind kind;
    uint32_t id;            /* uid or gid; UINT32_MAX: of all clients that can't be identified */
    enum resource resource; /* has_total in its row */
    uint32_t device;        /* index; TOTAL_OF_SERVER: the resource is not of a device */
    uint32_t members;
    struct allowance_source limit_from; /* what set the limit */
    char name[96];
};

struct totals {
    struct total *first;
};

/* A membership in a total. It counts between total_members_enter and total_members_exit. */
struct total_member {
    struct total_member *next;
    struct total *total;
    struct quota_link link;
};

/*
 * Adds a membership in this total to the list, unless the list has one already. A total that does
 * not exist is made, without a limit. Returns 0; or -ENOMEM, and the list is as it was.
 */
int total_join(struct totals *totals, enum total_kind kind, uint32_t id, enum resource resource,
               uint32_t device, struct total_member **list);

/* The quota counts in all of the list's totals from now on, with what it holds; or no longer. */
void total_members_enter(struct total_member *list, struct quota *quota);
void total_members_exit(struct total_member *list, struct quota *quota);

/* The lowest limit of the list's totals; UINT64_MAX without one. */
uint64_t total_members_limit(const struct total_member *list);

/* Ends all memberships of a list that does not count any more, and frees totals without members.
 * *list is NULL afterwards. */
void total_members_leave(struct totals *totals, struct total_member **list);

#endif
