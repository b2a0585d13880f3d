/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/gate_trace.h"

#include <stddef.h>

#include "common/util.h"
#include "server/worker/client/client.h"
#include "server/worker/sharing/gate.h"

_Static_assert((int)SCHEDULER_HOLDS == (int)TRACE_HELD_THREADS, "the gate's reasons come first");

static uint32_t number_of(const struct scheduler_client *scheduled)
{
    return container_of(scheduled, const struct gate_client, scheduled)->client->number;
}

/* ---- leases ---- */

static void end_lease(struct gate_trace *watch, uint32_t lease_group, uint64_t now)
{
    struct proto_trace_record record = {.kind = TRACE_LEASE,
                                        .client = watch->lease_groups[lease_group].client,
                                        .value = lease_group,
                                        .from = watch->lease_groups[lease_group].from,
                                        .to = now};
    if (!watch->lease_groups[lease_group].client)
        return;
    trace_add(watch->trace, &record);
    watch->lease_groups[lease_group].client = 0;
}

static void look_at_lease_group(struct gate *gate, uint32_t lease_group, uint64_t now)
{
    struct gate_trace *watch = &gate->watch;
    const struct scheduler_client *holder = lease_group < gate->scheduler.lease_group_count
                                                ? gate->scheduler.lease_groups[lease_group].holder
                                                : NULL;
    uint32_t client = holder ? number_of(holder) : 0;
    uint64_t lease = holder ? holder->leases : 0;
    if (watch->lease_groups[lease_group].client == client &&
        watch->lease_groups[lease_group].lease == lease)
        return;
    end_lease(watch, lease_group, now);
    watch->lease_groups[lease_group].client = client;
    watch->lease_groups[lease_group].lease = lease;
    watch->lease_groups[lease_group].from = now;
}

/* ---- holds ---- */

static void end_hold(struct gate *gate, struct gate_client *at, uint64_t now)
{
    struct proto_trace_record record = {.kind = TRACE_HOLD,
                                        .client = at->client->number,
                                        .value = at->traced_hold,
                                        .from = at->traced_from,
                                        .to = now};
    if (at->traced_hold != SCHEDULER_HOLDS)
        trace_add(gate->watch.trace, &record);
    at->traced_hold = SCHEDULER_HOLDS;
}

static void look_at_hold(struct gate *gate, struct gate_client *at, uint64_t now)
{
    if (at->traced_hold == at->hold)
        return;
    end_hold(gate, at, now);
    at->traced_hold = at->hold;
    at->traced_from = now;
}

/* ---- the whole ---- */

void gate_trace_look(struct gate *gate, uint64_t now)
{
    struct gate_trace *watch = &gate->watch;
    uint32_t lease_groups = gate->scheduler.lease_group_count;
    uint32_t known = watch->lease_group_count;
    for (uint32_t i = 0; i < lease_groups || i < known; i++)
        look_at_lease_group(gate, i, now);
    watch->lease_group_count = lease_groups;
    if (watch->changes_seen == watch->changes)
        return;
    watch->changes_seen = watch->changes;
    for (struct gate_client *at = gate->first; at; at = at->next)
        look_at_hold(gate, at, now);
}

void gate_trace_begin(struct gate *gate, uint64_t now)
{
    struct gate_trace *watch = &gate->watch;
    watch->begun = true;
    watch->lease_group_count = 0;
    watch->changes_seen = watch->changes - 1;
    for (uint32_t i = 0; i < SCHEDULER_LEASE_GROUPS; i++)
        watch->lease_groups[i].client = 0;
    for (struct gate_client *at = gate->first; at; at = at->next)
        at->traced_hold = SCHEDULER_HOLDS;
    gate_trace_look(gate, now);
}

void gate_trace_end(struct gate *gate, uint64_t now)
{
    struct gate_trace *watch = &gate->watch;
    if (!watch->begun)
        return;
    gate_trace_look(gate, now);
    for (uint32_t i = 0; i < watch->lease_group_count; i++)
        end_lease(watch, i, now);
    for (struct gate_client *at = gate->first; at; at = at->next)
        end_hold(gate, at, now);
    watch->begun = false;
}

void gate_trace_forget(struct gate *gate, struct gate_client *at, uint64_t now)
{
    if (gate_trace_wanted(&gate->watch))
        end_hold(gate, at, now);
}
