/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * granted: allowances as messages to a worker or a client carry them, with every resource set. A
 * test sets what it is about, so it needs no change when there is a new resource. Any thread.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_GRANTED_H
#define GPUSHARE_TESTS_SUPPORT_GRANTED_H

#include "common/limits/allowance.h"
#include "common/util.h"

/* Nothing is guaranteed, and all of every resource may be used: 1 TiB of those in bytes. */
static inline struct proto_allowance granted_whole(void)
{
    struct allowance whole = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++)
        whole.of[i] = (struct allowance_range){
            0, allowance_resource(i)->unit == DIALECT_SHARE ? ALLOWANCE_WHOLE : UINT64_C(1) << 40};
    return allowance_to_wire(&whole);
}

/* The same with this limit of threads, in hundredths of a per cent. */
static inline struct proto_allowance granted_threads(uint64_t limit)
{
    struct proto_allowance allowance = granted_whole();
    allowance.threads.limit = limit;
    return allowance;
}

/* The grant of a server without limits of its own to a client that asks for this. */
static inline struct proto_allowance granted_asked(const struct proto_allowance *asked)
{
    const struct proto_allowance_sources nobody = {0};
    const struct proto_allowance most = granted_whole();
    struct allowance whole = allowance_from_wire(&most, &nobody);
    struct allowance granted = allowance_from_wire(asked, &nobody);
    for (enum resource i = 0; i < RESOURCES; i++) {
        if (granted.of[i].request == ALLOWANCE_UNSET)
            granted.of[i].request = 0;
        granted.of[i].limit = min(granted.of[i].limit, whole.of[i].limit);
    }
    return allowance_to_wire(&granted);
}

#endif
