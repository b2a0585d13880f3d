/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * total_override: the limits of users' and groups' totals: the configuration's, or those that an
 * administrator has set in their place.
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

/* Bounded because the list is searched whenever a client attaches. */
#define TOTAL_OVERRIDES_MAX 1024

struct total_override {
    enum total_kind kind;
    uint32_t id;
    unsigned parts;          /* RESOURCE_BITs of the limits that were set; not 0 */
    struct allowance limits; /* only resources that have a total */
    struct allowance said;   /* what the configuration said when each limit was set */
};

struct total_overrides {
    struct total_override *items;
    size_t count;
};

/*
 * The limits of a user's or a group's total under a configuration; NULL: without one. id is
 * CONFIG_ID_UNKNOWN for clients that can't be identified. They could be anybody, so the strictest
 * of all limits that were set holds for them too. *limits is allowance_none where nothing limits
 * the total. Returns the RESOURCE_BITs of the limits that were set.
 */
unsigned total_override_limits(const struct total_overrides *overrides, const struct config *config,
                               enum total_kind kind, uint32_t id, struct allowance *limits);

/*
 * Makes *to a copy of `of` in which the limits of these parts are set too; a limit that is unset is
 * taken out. The caller frees *to. Returns 0; -ENOMEM; or -ENOSPC if there are TOTAL_OVERRIDES_MAX.
 * *to is empty after a failure.
 */
int total_override_with(struct total_overrides *to, const struct total_overrides *of,
                        const struct config *config, enum total_kind kind, uint32_t id,
                        unsigned parts, const struct allowance *limits);

typedef void total_override_forgotten(void *context, enum total_kind kind, uint32_t id,
                                      unsigned parts);

/* This configuration is in force from now on. Limits that hold no longer are taken out; forgotten,
 * which may be NULL, is told of each, with context. */
void total_override_forget(struct total_overrides *overrides, const struct config *config,
                           total_override_forgotten *forgotten, void *context);

/* Frees the table. Nobody is told. */
void total_override_free(struct total_overrides *overrides);

#endif
