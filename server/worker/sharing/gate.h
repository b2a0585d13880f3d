/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * gate: which clients may hand work to the device now, and how much of it.
 *
 * server/scheduler/ decides. The gate tells the scheduler what happens, and tells the submitter
 * which clients the scheduler lets go on: these are runnable. The gate counts from a client's
 * timelines how much the client has in flight, and tells the scheduler the difference.
 *
 * In concurrent mode, while no client has a duty cycle and all have the same priority and account,
 * the gate is open: it holds no client and does not ask the scheduler. The submitter compares two
 * numbers; the gate counts a client's work in flight only when it may have reached the client's
 * in-flight limit.
 *
 * The submitter leaves a held client alone until the gate makes it runnable. gate_next says when to
 * ask for runnable clients; reports of other threads may bring that time forward.
 *
 * Under the gate's lock only those of quiet_calls and driver_calls are taken. It is taken under
 * worker->clients_lock, client->lock and the lock of struct placement_table. No call takes longer
 * than one decision of the scheduler. Times are nanoseconds on clock_now's clock.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_GATE_H
#define GPUSHARE_SERVER_WORKER_SHARING_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "server/scheduler/carry.h"
#include "server/scheduler/scheduler.h"
#include "server/worker/sharing/gate_trace.h"

struct client;
struct proto_worker_usage;

/* The gate's knowledge of a client and of the accounts that it counts in, for the next worker. */
struct gate_carried {
    struct carry_client client;
    struct scheduler_account *of[PROTO_CLIENT_ACCOUNTS];
    struct carry_account accounts[PROTO_CLIENT_ACCOUNTS]; /* number 0: nothing is known */
    uint32_t count;
};

/* The gate's part of a client. Under the gate's lock, except where a member says otherwise. */
struct gate_client {
    struct scheduler_client scheduled;
    struct client *client;
    struct gate_client *next; /* in the list of all; changed by the control thread */
    struct gate_client *runnable_next;
    bool added;                      /* the scheduler knows the client */
    bool runnable;                   /* in the gate's list of runnable clients */
    bool dropped;                    /* the submitter has dropped it: it is never runnable again */
    enum scheduler_hold hold;        /* why it is held; SCHEDULER_HOLDS: it is not */
    uint64_t charged_gpu;            /* part of usage.gpu_nanoseconds that is charged already */
    enum scheduler_hold traced_hold; /* gate_trace's */
    uint64_t traced_from;
    /* Under the client's lock: */
    uint64_t submitted;       /* commands since it attached; the submitter counts */
    uint64_t completed;       /* commands completed, as last counted for its pace */
    uint64_t told;            /* commands completed, as the scheduler was last told */
    uint64_t counted_at;      /* when they were last counted */
    bool counted_busy;        /* work was in flight from that time on */
    uint32_t batch;           /* number of commands before a completion */
    uint32_t in_flight_limit; /* commands in flight that need no asking while the gate is open */
    uint32_t go_on_at;        /* a full client may go on with so many commands in flight... */
    uint64_t go_on_ns;        /* ...which last about this time */
    bool go_on_drained;       /* ...or as soon as a ring that has more has nothing in flight */
    uint32_t lacking_only;    /* the room that it was given is for rings with fewer than this in
                                 flight, until they have as many; 0: for all */
};

struct gate {
    pthread_mutex_t lock;
    struct scheduler scheduler;
    struct gate_client *first;
    struct gate_client *runnable_first, *runnable_last;
    struct gate_client *ending;  /* see gate_find_ending; NULL if there is none */
    _Atomic uint32_t has_ending; /* 1 while `ending` is set */
    _Atomic uint32_t held_count; /* clients that wait for the end of other clients' work */
    _Atomic uint32_t open;
    _Atomic uint32_t paused;      /* nobody may submit: gate_pause */
    _Atomic uint64_t narrow;      /* gate_narrow */
    _Atomic uint32_t singly;      /* gate_set_singly */
    _Atomic uint64_t turned_away; /* in a pause: when a client first could not submit; 0: none */
    /* A pause between two leases has begun. Called under the lock; NULL: nobody is told. */
    void (*between)(void *context);
    void *between_context;
    _Atomic uint64_t next; /* ns */
    struct gate_trace watch;
};

void gate_open(struct gate *gate);
/* A trace has begun; a trace is about to end. Control thread. */
void gate_trace_started(struct gate *gate);
void gate_trace_stopping(struct gate *gate);
/* All clients must have been removed, and no other thread may use the gate. */
void gate_close(struct gate *gate);

/* ---- the control thread, without locks held; worker_reschedule must follow ---- */

/* gate_set_schedule, gate_add and gate_set_limits return 0, or an error number with a sentence in
 * why; nothing has changed then. New settings and limits take effect at once, with work in flight.
 * gate_set_schedule: how the device is shared. */
uint32_t gate_set_schedule(struct gate *gate, const struct scheduler_schedule *schedule,
                           struct error *why);
/* Whether, in a mode in which one client at a time runs on the whole device, it has one command at
 * a time there. It begins before the first client comes: later there may be more in flight. */
void gate_set_singly(struct gate *gate, bool singly);
/* Adds a client that runs on these SM groups and counts in these accounts; NULL: in one of its own.
 * The client does not become runnable before it has been at the gate, so until the submitter knows
 * the client it may be removed and freed at once. */
uint32_t gate_add(struct gate *gate, struct client *client, const struct scheduler_limits *limits,
                  const struct scheduler_accounts *accounts, const struct sm_group_set *sm_groups,
                  struct error *why);
/* accounts: NULL for those that it has. */
uint32_t gate_set_limits(struct gate *gate, struct client *client,
                         const struct scheduler_limits *limits,
                         const struct scheduler_accounts *accounts, struct error *why);
/* Sets an account's request and limit of time, and its duty (scheduler_account_set and
 * scheduler_account_set_duty). */
uint32_t gate_set_account(struct gate *gate, struct scheduler_account *account, uint32_t request,
                          uint32_t limit, uint32_t duty, struct error *why);
/* Says which SM groups belong to others (scheduler_set_foreign). */
void gate_set_foreign(struct gate *gate, struct client *client, const struct sm_group_set *foreign);
/* The client's work runs on these SM groups from now on. Does nothing for an empty set or a client
 * that was not added. Any thread, under the lock of struct placement_table. */
void gate_set_sm_groups(struct gate *gate, struct client *client,
                        const struct sm_group_set *sm_groups);
/* Removes a client that has nothing in flight. Idempotent. */
void gate_remove(struct gate *gate, struct client *client);

/* ---- another worker: server/scheduler/carry.h ---- */

/* Returns false for a client that was not added. Under the client's lock; any thread. */
bool gate_carry_take(struct gate *gate, struct client *client, struct gate_carried *to);
/* Both: control thread, for a client that was added a moment ago and is not served yet.
 * gate_carry_use sets its gpu_nanoseconds to what earlier workers have counted, which they have
 * charged. gate_carry_give does not look at `of`: accounts are those that the client counts in now,
 * where one of the number is given. */
void gate_carry_use(struct gate *gate, struct client *client, uint64_t gpu_nanoseconds);
void gate_carry_give(struct gate *gate, struct client *client, const struct gate_carried *from);
/* It is served again from now on: what it is owed has not lapsed since gate_carry_give. */
void gate_carry_resume(struct gate *gate, struct client *client);
void gate_carry_leave(struct gate *gate, uint64_t account, const struct carry_client *client,
                      const struct carry_account *of_account);
/* The debts of clients that left: gives them; takes them, if they have changed since *changes. */
void gate_carry_debts(struct gate *gate, const struct debts *debts);
bool gate_carried_debts(struct gate *gate, uint64_t *changes, struct debts *to);

/* ---- the submitter, under client->lock ---- */

/*
 * The client has work. Returns how many commands it may submit, at most max; they count as
 * submitted until gate_leave. 0 with *held set: the client is held until the gate makes it
 * runnable. 0 without: the client is full until go_on_at commands are left in flight, or where
 * go_on_drained says so, a ring has drained. See lacking_only.
 */
uint32_t gate_enter(struct gate *gate, struct client *client, uint32_t max, bool *held);
/* The client has submitted what it could; gate_client.submitted is up to date. `more`: it has work
 * left. */
void gate_leave(struct gate *gate, struct client *client, bool more);

/* ---- the submitter, without locks held ---- */

/* The next client that may go on or should ask again; NULL if there is no other. Never a client
 * that was dropped. */
struct client *gate_next_runnable(struct gate *gate);
/* The client whose lease has expired and whose last command is about to finish while others wait;
 * poll it with gate_note_done. NULL if there is none. */
struct client *gate_find_ending(struct gate *gate);
/* The client is never runnable again, and counts as without work. */
void gate_drop(struct gate *gate, struct client *client);

/* ---- the quiet thread, without locks held ---- */

/* No client submits any more, from its next turn on, and leases stand still. Clients that want to
 * are HELD; after gate_resume all must be marked for the submitter. */
void gate_pause(struct gate *gate);
/* Leases go on, by as much longer as their clients lost. Returns when a client first could not
 * submit because of the pause; UINT64_MAX: none came. */
uint64_t gate_resume(struct gate *gate);
/* Whether a pause is to begin where a lease ends next with nothing in flight. */
void gate_stop_between(struct gate *gate, bool on);
/* From its next turn on, a client has no more in flight for each of its rings than one command, or
 * what lasts so long (ns). GATE_WIDE: as much as ever. */
void gate_narrow(struct gate *gate, uint64_t ns);
#define GATE_WIDE UINT64_MAX

/* ---- any thread ---- */

/* A hint, outside of the client's lock. */
static inline bool gate_is_open(const struct gate *gate)
{
    /* Relaxed: gate_enter looks again under the lock; and whoever shuts the gate takes the lock of
     * every client, under which the submitter acts on an open gate. */
    return atomic_load_explicit(&gate->open, memory_order_relaxed);
}
static inline bool gate_is_paused(const struct gate *gate)
{
    return atomic_load(&gate->paused) != 0;
}
/* Whether a command that is handed over now is alone on the device. */
static inline bool gate_is_singly(const struct gate *gate)
{
    return atomic_load_explicit(&gate->singly, memory_order_relaxed) != 0;
}
/* The width that gate_narrow set last. */
static inline uint64_t gate_narrowed(const struct gate *gate)
{
    return atomic_load_explicit(&gate->narrow, memory_order_relaxed); /* a hint */
}
/* Whether a pause between two leases has begun, which gate_resume ends. */
bool gate_is_between(struct gate *gate);
/* A client that has work was left HELD because of a pause. The submitter. */
void gate_turn_away(struct gate *gate);
/* The client's level of priority. */
uint32_t gate_level(struct gate *gate, const struct client *client);
/* Work of the client is done. Under client->lock. */
void gate_note_done(struct gate *gate, struct client *client);
/* Charges the GPU time that the meter has counted since the last call to all clients. */
void gate_charge_usage(struct gate *gate);
/* The same for one client alone: with a thousand clients each of whom is asked about, that is a
 * thousand steps and not a million. */
void gate_charge_client(struct gate *gate, struct client *client);
/* Fills the members of *usage that are about charged time, leases and waiting. */
void gate_read_usage(struct gate *gate, struct client *client, struct proto_worker_usage *usage);
/* Whether a client waits for a lease, or for room beside higher priorities, so that the end of
 * other clients' work has to be seen at once. */
static inline bool gate_has_held(const struct gate *gate)
{
    return atomic_load(&gate->held_count) != 0;
}
/* Whether gate_find_ending may find a client. */
static inline bool gate_has_ending(const struct gate *gate)
{
    /* Relaxed: gate_find_ending looks again under the lock. */
    return atomic_load_explicit(&gate->has_ending, memory_order_relaxed);
}
/* When to call gate_next_runnable; 0: now; SCHEDULER_NEVER: not before another thread reports. */
static inline uint64_t gate_next(const struct gate *gate)
{
    return atomic_load(&gate->next);
}

#endif
