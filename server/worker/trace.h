/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * trace: what ran when, written into memory that the supervisor made (protocol.xml:
 * trace_header, trace_record).
 *
 * Any thread adds records, without a lock; a record that finds no room is counted. Off, a call
 * costs one load. trace_begin and trace_end: control thread. Times are nanoseconds
 * of CLOCK_MONOTONIC (timeline_now). A record that ended before the trace began is left
 * out, one that began before it is cut there.
 */
#ifndef GPUSHARE_SERVER_WORKER_TRACE_H
#define GPUSHARE_SERVER_WORKER_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/shm.h"
#include "protocol.h"

enum trace_kind {
    TRACE_SPAN = PROTO_TRACE_KIND_SPAN,
    TRACE_LEASE = PROTO_TRACE_KIND_LEASE,
    TRACE_HOLD = PROTO_TRACE_KIND_HOLD,
    TRACE_SHARE = PROTO_TRACE_KIND_SHARE,
    TRACE_MODE = PROTO_TRACE_KIND_MODE,
};

struct trace {
    _Atomic uint32_t on;
    _Atomic uint32_t writers; /* threads that are, or may be, at the memory */
    struct shm memory;
    uint64_t capacity; /* records */
    uint64_t started;
};

/* Why a client was held, besides the gate's reasons (enum scheduler_hold). */
enum { TRACE_HELD_THREADS = PROTO_HOLD_THREADS };

/* The header's fields about the device. */
struct trace_device {
    uint32_t mode, sm_groups, sm_group_multiprocessors, remainder;
};

/* A trace that is off. */
void trace_open(struct trace *trace);

/*
 * Begins. Takes the descriptor over, on failure too; a trace that was on is stopped
 * first. Returns 0, -EBADF (no sealed memory of that size), -EINVAL (no room for a
 * record) or another -errno.
 */
int trace_begin(struct trace *trace, int fd, uint64_t bytes, const struct trace_device *device);

/* Ends it: waits until no thread writes any more, forgets the memory. Idempotent. */
void trace_end(struct trace *trace);

/* Whether records are wanted at all. NULL: never. */
static inline bool trace_is_on(const struct trace *trace)
{
    return trace && atomic_load_explicit(&trace->on, memory_order_relaxed);
}

/* Adds a record, its kind set; does nothing when off. */
void trace_add(struct trace *trace, const struct proto_trace_record *record);

#endif
