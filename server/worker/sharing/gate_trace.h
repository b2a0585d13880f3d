/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * gate_trace: leases, and the times in which the gate held clients, written into a trace.
 *
 * While a trace is on the gate is looked at after each of its calls, with the time of
 * that call: so a lease in the trace begins and ends when the scheduler says that it
 * does. A lease ends when its last work is done, as it is charged. Under the gate's lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_GATE_TRACE_H
#define GPUSHARE_SERVER_WORKER_SHARING_GATE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/scheduler/scheduler.h"
#include "server/worker/trace.h"

struct gate;
struct gate_client;

struct gate_trace {
    struct trace *trace; /* NULL: never */
    bool begun;
    uint32_t changes; /* of holds; counted by the gate */
    uint32_t looked;  /* how many of them have been looked at */
    uint32_t lease_group_count;
    struct {
        uint32_t client; /* the lease's holder; 0: there is none */
        uint64_t lease;  /* of the client's, which */
        uint64_t from;
    } lease_groups[SCHEDULER_LEASE_GROUPS];
};

/* Whether to look. */
static inline bool gate_trace_wanted(const struct gate_trace *watch)
{
    return watch->begun && trace_is_on(watch->trace);
}

/* The trace is on now; it is about to end: what goes on is written down so far. */
void gate_trace_begin(struct gate *gate, uint64_t now);
void gate_trace_end(struct gate *gate, uint64_t now);

/* Something may have changed, at this time. */
void gate_trace_look(struct gate *gate, uint64_t now);

/* The client is no more one of the gate's. */
void gate_trace_forget(struct gate *gate, struct gate_client *at, uint64_t now);

#endif
