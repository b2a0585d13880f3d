/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* owner_total: what a user, a group or a control group has in total, as an administrator sees and
 * sets it. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_OWNER_TOTAL_H
#define GPUSHARE_SERVER_SUPERVISOR_OWNER_TOTAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "protocol.h"
#include "server/supervisor/account/total_override.h"
#include "server/supervisor/reload.h"

struct supervisor;

/* New limits of a total. */
struct total_change {
    /* RESOURCE_BITs of the limits and requests that change; others stay. Only what the worker
     * enforces has a request. */
    unsigned parts, request_parts;
    struct allowance limits; /* memory is for each GPU; unset: the configuration's word applies */
};

/*
 * Sets what they have in total from now on, in place of what the configuration says, until that
 * says something else of them. A limit below what is in use takes nothing away. After an error
 * nothing has changed. A control group has no memory.
 *
 * *over and the asker: as for reload_totals, since a change of totals is a reload of these alone. A
 * worker is asked for time and threads; it refuses where the requests don't fit.
 */
uint32_t owner_total_set(struct supervisor *supervisor, const struct account_owner *owner,
                         const struct total_change *change, const struct reload_asker *asker,
                         bool *over, struct error *why);

/* Amounts are in the resource's own unit: bytes, or hundredths of a per cent. */
struct total_view {
    uint64_t request; /* guaranteed to all of them; PROTO_UNSET: nothing is said, or it has none */
    uint64_t limit;   /* PROTO_UNSET: none */
    uint64_t used;    /* of memory: what each client uses or is guaranteed, whichever is more; of
                         what the worker enforces: the clients' own requests */
    uint32_t clients; /* scheduled in this account, of what the worker enforces */
    uint64_t singly_ns; /* for which the device served one client at a time; of the same */
    bool set;           /* by owner_total_set */
};
/* Fills *view with the total of a resource, on this device if each device has its own of it. */
void owner_total_view(const struct supervisor *supervisor, const struct account_owner *owner,
                      enum resource resource, uint32_t device, struct total_view *view);

/* The limit of a user's total alone, found without a look at each client; PROTO_UNSET: none. A uid
 * that can't be seen has the total of all that can't be identified. */
uint64_t owner_total_user_limit(const struct supervisor *supervisor, uint32_t uid,
                                enum resource resource, uint32_t device);

/* A group's total on one device. */
struct group_total {
    uint32_t gid, device;
    uint32_t clients;          /* that count in it, on this device */
    uint64_t limit[RESOURCES]; /* PROTO_UNSET: none */
    uint64_t memory_held; /* device memory: what each client uses or is guaranteed, whichever is
                             more */
};
typedef void owner_total_group(void *context, const struct group_total *total);

/* Calls `each` for the groups that have a limit in total and an attached client, in ascending
 * order, for each device; `most` groups at most. Returns how many groups were left out, or
 * -ENOMEM. */
int owner_total_each_group(const struct supervisor *supervisor, uint32_t most,
                           owner_total_group *each, void *context);

/* Whether owner_total_set has put a limit or a request of this resource in force that `limits` has
 * too. */
bool owner_total_is_set(const struct supervisor *supervisor, const struct account_owner *owner,
                        enum resource resource, const struct allowance *limits);

#endif
