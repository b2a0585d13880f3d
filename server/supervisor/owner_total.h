/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* owner_total: what a user or a group has in total, as an administrator sees and sets it. Loop
 * thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_OWNER_TOTAL_H
#define GPUSHARE_SERVER_SUPERVISOR_OWNER_TOTAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "protocol.h"
#include "server/supervisor/account/total.h"

struct supervisor;

/* A user, or a group: all their clients together. */
struct account_owner {
    bool group;
    uint32_t id; /* uid or gid */
};

/* New limits of a total. */
struct total_change {
    unsigned parts;          /* RESOURCE_BITs of what changes; other limits stay */
    struct allowance limits; /* memory is for each GPU; unset: the configuration's limit applies */
};

/*
 * Limits what they have in total from now on, in place of what the configuration says, until that
 * says something else of them. A limit below what is in use takes nothing away. After an error
 * nothing has changed. by names who asked, for the log.
 */
uint32_t owner_total_set(struct supervisor *supervisor, const struct account_owner *owner,
                         const struct total_change *change, const char *by, struct error *why);

struct total_view {
    uint64_t limit; /* bytes; PROTO_UNSET: none */
    uint64_t used;  /* bytes; of each client what it uses or is guaranteed, whichever is more */
    bool set;       /* the limit was set by owner_total_set */
};
/* Fills *view with the total of a resource, on this device if each device has its own of it. */
void owner_total_view(const struct supervisor *supervisor, const struct account_owner *owner,
                      enum resource resource, uint32_t device, struct total_view *view);

#endif
