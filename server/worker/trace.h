/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * trace: what ran when, written into memory that the supervisor made (protocol.xml:
 * trace_header, trace_record).
 *
 * Any thread adds records, without a lock. A record that finds no room is counted and dropped.
 * While no trace is on, adding a record costs one load. The control thread begins and ends traces.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC (clock_now). A record that ended before the trace
 * began is left out; a record that began before the trace is cut to the trace's beginning.
 */
#ifndef GPUSHARE_SERVER_WORKER_TRACE_H
#define GPUSHARE_SERVER_WORKER_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/ipc/shm.h"
#include "protocol.h"

enum trace_kind {
    TRACE_SPAN = PROTO_TRACE_KIND_SPAN,
    TRACE_LEASE = PROTO_TRACE_KIND_LEASE,
    TRACE_HOLD = PROTO_TRACE_KIND_HOLD,
    TRACE_SM_GROUPS = PROTO_TRACE_KIND_SM_GROUPS,
    TRACE_MODE = PROTO_TRACE_KIND_MODE,
    TRACE_RECOVERY = PROTO_TRACE_KIND_RECOVERY,
};

struct trace {
    _Atomic uint32_t on;
    _Atomic uint32_t writers; /* threads that write a record, or are about to */
    struct shm memory;
    uint64_t capacity; /* records */
    uint64_t started;
    uint64_t lost_at; /* when the last worker was lost, whose trace this was; 0: it is our own */
};

/* Why a client was held, besides the gate's reasons (enum scheduler_hold). */
enum { TRACE_HELD_THREADS = PROTO_HOLD_THREADS };

/* Fields of the trace's header that describe the device. */
struct trace_device {
    uint32_t mode, sm_groups, sm_group_multiprocessors, remainder;
};

/* Sets *trace to a trace that is off. */
void trace_open(struct trace *trace);

/*
 * Begins a trace in `bytes` bytes of the memory behind fd. Takes fd over, on failure too. A trace
 * that is on is ended first. Returns 0; -EBADF if fd is no sealed memory of that size; -EINVAL if
 * there is no room for a record; or another -errno. Control thread.
 */
int trace_begin(struct trace *trace, int fd, uint64_t bytes, const struct trace_device *device);

/*
 * Goes on with a trace of another worker that was lost at this time (not 0): its header and records
 * stay, and others follow them. Like trace_begin otherwise; -EINVAL too if the memory has no trace
 * of that size and of this version, which began before lost_at. Control thread.
 */
int trace_go_on(struct trace *trace, int fd, uint64_t bytes, uint64_t lost_at);

/* Records that nothing of this client was served from the loss of the last worker until now.
 * client: 0 for the device. Does nothing where the trace is off or did not go on. Control thread.
 */
void trace_add_recovery(struct trace *trace, uint32_t client);

/* Ends the trace: waits until no thread writes any more, then unmaps the memory. Idempotent.
 * Control thread. */
void trace_end(struct trace *trace);

/* Whether a trace is on, so that records are wanted. False for NULL. Any thread. */
static inline bool trace_is_on(const struct trace *trace)
{
    return trace && atomic_load_explicit(&trace->on, memory_order_relaxed);
}

/* Adds a record whose kind is set. Does nothing while no trace is on. Any thread. */
void trace_add(struct trace *trace, const struct proto_trace_record *record);

#endif
