/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * total_override: what users and groups may have in total: what the configuration says,
 * and in its place what an administrator has set since.
 *
 * A setting holds until the configuration says something else about the same thing, this
 * user's device memory for instance, than it said when it was set. A list never changes but by
 * forgetting: a new one is made of it, so that whoever fails half-way still has the old
 * one. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_TOTAL_OVERRIDE_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_TOTAL_OVERRIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/supervisor/config/config.h"
#include "server/supervisor/account/total.h"

/* Each is looked for whenever a client attaches. */
#define TOTAL_OVERRIDES_MAX 1024

struct total_override {
    enum total_kind kind;
    uint32_t id;
    unsigned parts;          /* of limits that were set: RESOURCE_BITs; not 0 */
    struct allowance limits; /* of resources that have a total */
    struct allowance said;   /* by the configuration when each part was set */
};

struct total_overrides {
    struct total_override *items;
    size_t count;
};

/*
 * Their limits under a configuration (NULL: none is in force). id: CONFIG_ID_UNKNOWN for
 * those who can't be seen, who could be anybody: for them the strictest of all that is set holds,
 * too. Returns which parts were set; *limits is allowance_none where nothing limits them.
 */
unsigned total_overrides_limits(const struct total_overrides *settings, const struct config *config,
                                enum total_kind kind, uint32_t id, struct allowance *limits);

/*
 * *to becomes a copy of `of` in which these parts of limits are set besides; the caller frees it; a
 * part that is no limit is set no longer. 0; -ENOMEM; -ENOSPC: there are TOTAL_OVERRIDES_MAX.
 */
int total_overrides_with(struct total_overrides *to, const struct total_overrides *of,
                         const struct config *config, enum total_kind kind, uint32_t id,
                         unsigned parts, const struct allowance *limits);

/* This configuration is in force from now on. forgotten (may be NULL) is told what holds no
 * longer because of that. */
void total_overrides_forget(struct total_overrides *settings, const struct config *config,
                            void (*forgotten)(enum total_kind kind, uint32_t id, unsigned parts));

void total_overrides_free(struct total_overrides *settings);

#endif
