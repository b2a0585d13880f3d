/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/total.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/util.h"

static void total_name(struct total *total)
{
    char owner[40];
    if (total->id == UINT32_MAX)
        snprintf(owner, sizeof owner, "%s that can't be seen",
                 total->kind == TOTAL_USER ? "users" : "groups");
    else
        snprintf(owner, sizeof owner, "%s %u", total->kind == TOTAL_USER ? "user" : "group",
                 total->id);
    snprintf(total->name, sizeof total->name, "%s limit of all clients of %s together",
             allowance_resource(total->resource)->phrase, owner);
}

static struct total *total_find(const struct totals *totals, enum total_kind kind, uint32_t id,
                                enum resource resource, uint32_t device)
{
    struct total *total = totals->first;
    while (total && (total->kind != kind || total->id != id || total->resource != resource ||
                     total->device != device))
        total = total->next;
    return total;
}

static struct total *total_make(struct totals *totals, enum total_kind kind, uint32_t id,
                                enum resource resource, uint32_t device)
{
    struct total *total = calloc(1, sizeof *total);
    if (!total)
        return NULL;
    *total = (struct total){
        .next = totals->first, .kind = kind, .id = id, .resource = resource, .device = device};
    total_name(total);
    quota_open(&total->quota, total->name, UINT64_MAX, NULL);
    totals->first = total;
    return total;
}

static void total_settle(struct totals *totals, struct total *total)
{
    struct total **link = &totals->first;
    if (total->members)
        return;
    while (*link != total)
        link = &(*link)->next;
    *link = total->next;
    quota_close(&total->quota);
    free(total);
}

int total_join(struct totals *totals, enum total_kind kind, uint32_t id, enum resource resource,
               uint32_t device, struct total_member **list)
{
    struct total *total = total_find(totals, kind, id, resource, device);
    for (const struct total_member *member = *list; member; member = member->next)
        if (member->total == total)
            return 0;
    struct total_member *member = calloc(1, sizeof *member);
    if (!member)
        return -ENOMEM;
    if (!total && !(total = total_make(totals, kind, id, resource, device))) {
        free(member);
        return -ENOMEM;
    }
    total->members++;
    *member = (struct total_member){.next = *list, .total = total};
    *list = member;
    return 0;
}

void total_members_enter(struct total_member *list, struct quota *quota)
{
    for (struct total_member *member = list; member; member = member->next)
        quota_join(quota, &member->link, &member->total->quota);
}

void total_members_exit(struct total_member *list, struct quota *quota)
{
    for (struct total_member *member = list; member; member = member->next)
        quota_leave(quota, &member->link);
}

uint64_t total_members_limit(const struct total_member *list)
{
    uint64_t lowest = UINT64_MAX;
    for (const struct total_member *member = list; member; member = member->next)
        lowest = min(lowest, member->total->quota.limit);
    return lowest;
}

void total_members_leave(struct totals *totals, struct total_member **list)
{
    for (struct total_member *member = *list, *next; member; member = next) {
        next = member->next;
        member->total->members--;
        total_settle(totals, member->total);
        free(member);
    }
    *list = NULL;
}
