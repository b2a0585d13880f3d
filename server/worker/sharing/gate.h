/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * gate: which clients may hand work to the device now, and how much of it.
 *
 * server/scheduler/ decides. The gate tells the scheduler what happens, and tells the submitter
 * which clients the scheduler lets go on: these are runnable. The gate counts what a client has in
 * flight from its timelines, and tells the scheduler the difference.
 *
 * In concurrent mode, while no client has a duty cycle and all have the same priority, the gate is
 * open: it holds no client and does not ask the scheduler. The submitter compares two numbers; the
 * gate counts a client's work in flight only when it may have reached the client's in-flight limit.
 *
 * The submitter leaves a held client alone until the gate makes it runnable. gate_next says when to
 * ask for runnable clients; reports of other threads may bring that time forward.
 *
 * The gate's lock is the innermost of all: it is taken under worker->clients_lock, client->lock and
 * the lock of the places, and nothing is taken under it. No call takes longer than a
 * choice of the scheduler.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_GATE_H
#define GPUSHARE_SERVER_WORKER_SHARING_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "server/scheduler/scheduler.h"
#include "server/worker/sharing/gate_trace.h"

struct client;
struct proto_worker_usage;

/* Part of its client. Under the gate's lock but what says otherwise. */
struct gate_client {
    struct scheduler_client scheduled;
    struct client *client;
    struct gate_client *next; /* of all; changed by the control thread */
    struct gate_client *runnable_next;
    bool added;                      /* the scheduler knows it */
    bool runnable;                   /* in the gate's list of runnable clients */
    bool dropped;                    /* by the submitter: never runnable again */
    enum scheduler_hold hold;        /* why it is on hold; SCHEDULER_HOLDS */
    uint64_t charged_gpu;            /* of usage.gpu_nanoseconds */
    enum scheduler_hold traced_hold; /* gate_trace's */
    uint64_t traced_from;
    /* Under the client's lock: */
    uint64_t submitted;       /* commands, ever; counted by the submitter */
    uint64_t completed;       /* of them, when last counted */
    uint64_t since;           /* when they were last counted */
    bool since_exact;         /* work was in flight from then on */
    uint32_t batch;           /* commands before a completion */
    uint32_t in_flight_limit; /* commands in flight that need no asking while the gate is open */
    uint32_t go_on_at;        /* blocked: it may go on with so many in flight... */
    uint64_t go_on_ns;        /* ...which last about this time */
};

struct gate {
    pthread_mutex_t lock;
    struct scheduler scheduler;
    struct gate_client *first;
    struct gate_client *runnable_first, *runnable_last;
    struct gate_client *ending;  /* see gate_find_ending; or NULL */
    _Atomic uint32_t has_ending; /* there is one */
    _Atomic uint32_t waiters;    /* clients that wait for others' work to end */
    _Atomic uint32_t open;
    _Atomic uint64_t next; /* ns */
    struct gate_trace watch;
};

void gate_open(struct gate *gate);
/* The trace is on; it is about to end. Control thread. */
void gate_trace_started(struct gate *gate);
void gate_trace_stopping(struct gate *gate);
/* All clients must have been removed. */
void gate_close(struct gate *gate);

/* ---- the control thread, without locks held; then worker_reschedule ---- */

/* As the calls of the scheduler: 0, or an error number that *why explains, and then nothing
 * changed. Other settings bind at once, with work in flight. */
uint32_t gate_set_schedule(struct gate *gate, const struct scheduler_settings *settings,
                           struct error *why);
/* SM groups as in scheduler_add. The client is not runnable before it was at the gate: until the
 * submitter knows it, it may be removed and freed at once. */
uint32_t gate_add(struct gate *gate, struct client *client, const struct scheduler_limits *limits,
                  const struct share_set *sm_groups, struct error *why);
/* As scheduler_own, right after gate_add. */
void gate_set_owner(struct gate *gate, struct client *client, uint32_t owner);
uint32_t gate_set_limits(struct gate *gate, struct client *client,
                         const struct scheduler_limits *limits, struct error *why);
/* Any thread, under the lock of the places: the client's work runs on these from now on. An empty
 * set and a client that was not added change nothing. */
void gate_set_sm_groups(struct gate *gate, struct client *client,
                        const struct share_set *sm_groups);
/* Nothing of the client is in flight. Idempotent. */
void gate_remove(struct gate *gate, struct client *client);

/* ---- the submitter, under client->lock ---- */

/*
 * The client has work. Returns how many commands it may submit, `most` at most; they count as
 * submitted until gate_leave. 0: held if *held, and it will be runnable; else it may go on when
 * go_on_at commands are left in flight.
 */
uint32_t gate_enter(struct gate *gate, struct client *client, uint32_t max, bool *held);
/* It submitted what it did (gate_client.submitted); `more`: and has work left. */
void gate_leave(struct gate *gate, struct client *client, bool more);

/* ---- the submitter, without locks held ---- */

/* A client that may go on, or that should ask again; NULL if there is no other. Never a client that
 * was dropped. */
struct client *gate_next_runnable(struct gate *gate);
/* The client whose lease has expired and whose last command is about to finish while others wait;
 * poll it with gate_note_done. NULL if there is none. */
struct client *gate_find_ending(struct gate *gate);
/* The client is left alone from now on: it has no work, and is never runnable again. */
void gate_drop(struct gate *gate, struct client *client);

/* ---- any thread ---- */

/* Under client->lock: work of it is done. */
void gate_note_done(struct gate *gate, struct client *client);
/* Charges the GPU time that the account has counted since the last call. */
void gate_charge_usage(struct gate *gate);
/* The fields of time and waiting. */
void gate_read_usage(struct gate *gate, struct client *client, struct proto_worker_usage *usage);
/* Whether a lease, or room for lower levels, is waited for: ends of work are to be seen at once. */
static inline bool gate_has_waiters(const struct gate *gate)
{
    return atomic_load(&gate->waiters) != 0;
}
/* Whether to ask gate_find_ending. */
static inline bool gate_has_ending(const struct gate *gate)
{
    return atomic_load_explicit(&gate->has_ending, memory_order_relaxed);
}
/* When to call gate_next_runnable; 0: now. SCHEDULER_NEVER. */
static inline uint64_t gate_next(const struct gate *gate)
{
    return atomic_load(&gate->next);
}

#endif
