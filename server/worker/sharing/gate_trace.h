/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * gate_trace: leases, and the times in which the gate held clients, written into a trace.
 *
 * While a trace is on, each call of the gate ends with a look at the gate, with the time of that
 * call. So a lease in the trace begins and ends when the scheduler says that it does; it ends when
 * its last work is done, as it is charged.
 *
 * All functions: under the gate's lock. Times are nanoseconds on clock_now's clock.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_GATE_TRACE_H
#define GPUSHARE_SERVER_WORKER_SHARING_GATE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "server/scheduler/scheduler.h"
#include "server/worker/trace.h"

struct gate;
struct gate_client;

struct gate_trace {
    struct trace *trace; /* NULL: nothing is ever recorded */
    bool begun;
    uint32_t changes;      /* of clients' holds; the gate counts them */
    uint32_t changes_seen; /* value of changes at the last look */
    uint32_t lease_group_count;
    struct {
        uint32_t client; /* number of the lease's holder; 0: there is none */
        uint64_t lease;  /* which of the holder's leases, counted */
        uint64_t from;   /* when it began */
    } lease_groups[SCHEDULER_LEASE_GROUPS];
};

/* Whether a trace is on, so that the gate has to look. */
static inline bool gate_trace_wanted(const struct gate_trace *watch)
{
    return watch->begun && trace_is_on(watch->trace);
}

/* The trace is on now. The trace is about to end: leases and holds that go on are recorded up to
 * now. */
void gate_trace_begin(struct gate *gate, uint64_t now);
void gate_trace_end(struct gate *gate, uint64_t now);

/* Records the leases and holds that have ended since the last look, at this time. */
void gate_trace_look(struct gate *gate, uint64_t now);

/* The client leaves the gate: its hold, if any, ends now. */
void gate_trace_forget(struct gate *gate, struct gate_client *at, uint64_t now);

#endif
