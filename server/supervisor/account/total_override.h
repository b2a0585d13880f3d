/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * total_override: the limits of the totals of users, groups and control groups: the
 * configuration's, or those that an administrator has set in their place.
 *
 * A limit that was set holds until the configuration says something else about the same limit (this
 * user's device memory, for instance) than it said when the limit was set. A list changes only by
 * forgetting. To set a limit a new list is made, so that a caller which fails half-way still has
 * the old one. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_TOTAL_OVERRIDE_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_TOTAL_OVERRIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/supervisor/config/config.h"
#include "server/supervisor/account/total.h"

/* A control group's path that limits can be set for. */
#define ACCOUNT_CGROUP_MAX 255

/* The owner of a total. */
struct account_owner {
    enum total_kind kind;
    uint32_t id;        /* uid or gid; CONFIG_ID_UNKNOWN: of all that can't be identified */
    const char *cgroup; /* TOTAL_CGROUP: its path; NULL: of all clients whose path is not known */
};

/* Writes "user 1001", "group 50" or "cgroup /a", without bytes that a terminal could take for
 * commands. Returns text. */
enum { ACCOUNT_OWNER_TEXT = ACCOUNT_CGROUP_MAX + 16 };
const char *account_owner_text(const struct account_owner *owner, char text[ACCOUNT_OWNER_TEXT]);

/* Bounded because the list is searched whenever a client attaches. */
#define TOTAL_OVERRIDES_MAX 1024

struct total_override {
    enum total_kind kind;
    uint32_t id;
    char cgroup[ACCOUNT_CGROUP_MAX + 1]; /* TOTAL_CGROUP: its path; else all 0 */
    unsigned parts;                      /* RESOURCE_BITs of the limits that were set; not 0 */
    struct allowance limits;             /* only resources that have a total */
    struct allowance said;               /* what the configuration said when each limit was set */
};

struct total_overrides {
    struct total_override *items;
    size_t count;
};

/*
 * The limits of an owner's total under a configuration; NULL: without one. Clients that can't be
 * identified could be anybody, so the strictest of all limits that were set holds for them too.
 * *limits is allowance_none where nothing limits the total. Returns the RESOURCE_BITs of the limits
 * that were set.
 */
unsigned total_override_limits(const struct total_overrides *overrides, const struct config *config,
                               const struct account_owner *owner, struct allowance *limits);

/*
 * owner: known, and its path has ACCOUNT_CGROUP_MAX bytes at most.
 * Makes *to a copy of `of` in which the limits of these parts are set too; a limit that is unset is
 * taken out. The caller frees *to. Returns 0; -ENOMEM; or -ENOSPC if there are TOTAL_OVERRIDES_MAX.
 * *to is empty after a failure.
 */
int total_override_with(struct total_overrides *to, const struct total_overrides *of,
                        const struct config *config, const struct account_owner *owner,
                        unsigned parts, const struct allowance *limits);

typedef void total_override_forgotten(void *context, const struct account_owner *owner,
                                      unsigned parts);

/* This configuration is in force from now on. Limits that hold no longer are taken out; forgotten,
 * which may be NULL, is told of each, with context. */
void total_override_forget(struct total_overrides *overrides, const struct config *config,
                           total_override_forgotten *forgotten, void *context);

/* Frees the table. Nobody is told. */
void total_override_free(struct total_overrides *overrides);

#endif
