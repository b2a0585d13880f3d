/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * total: what all clients of one user, or of one group's members, have together.
 *
 * A total is an account of device memory on one device, or of pinned host memory. It exists while
 * somebody is a member of it: a client's account of that resource. Its limit is set by
 * whoever knows the configuration. One thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_TOTAL_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_TOTAL_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/account/quota.h"

enum total_kind { TOTAL_USER, TOTAL_GROUP };

#define TOTAL_HOST UINT32_MAX /* not a device's: pinned host memory */

struct total {
    struct quota quota; /* the first member */
    struct total *next;
    enum total_kind kind;
    uint32_t id;     /* uid or gid; UINT32_MAX: of all who are not known */
    uint32_t device; /* index, or TOTAL_HOST */
    uint32_t members;
    char name[96];
};

struct totals {
    struct total *first;
};

/* A place in a total; counts between total_members_enter and total_members_exit. */
struct total_member {
    struct total_member *next;
    struct total *total;
    struct quota_link link;
};

/*
 * Adds a place in this total to the list, unless it has one already; the total is made,
 * without a limit, if there is none. Returns 0 or -ENOMEM (the list is as it was).
 */
int total_join(struct totals *totals, enum total_kind kind, uint32_t id, uint32_t device,
               struct total_member **list);

/* The account counts in all of the list's totals from now on, with what it holds; or no longer. */
void total_members_enter(struct total_member *list, struct quota *quota);
void total_members_exit(struct total_member *list, struct quota *quota);

/* Ends all places, which count no longer. *list is NULL then. */
void total_members_leave(struct totals *totals, struct total_member **list);

#endif
