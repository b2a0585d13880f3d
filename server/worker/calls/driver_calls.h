/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_calls: calls of the driver that take the context's lock, queued for a thread that may wait
 * for it.
 *
 * Mapping, registering, setting an attribute: such a call does not wait for the device, but for
 * every call that does, and nobody published for how long it keeps the lock itself. So the control
 * thread makes none of them. It leaves them here, and the caller thread (run/driver_caller.h) makes
 * them. A call that has to wait until nothing runs belongs to quiet_calls.h instead: behind it
 * every other would wait for a window.
 *
 * Calls of one client are made in their order, each after the one before it was made whole. Between
 * clients it goes by turns of their owners, and of the clients of one owner. A long piece of work
 * is cut into steps: after each of them it is others' turn.
 *
 * The queue has a lock of its own, which is not held while a call is made. No other lock is taken
 * under it.
 */
#ifndef GPUSHARE_SERVER_WORKER_CALLS_DRIVER_CALLS_H
#define GPUSHARE_SERVER_WORKER_CALLS_DRIVER_CALLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/list.h"
#include "server/worker/calls/chains.h"
#include "server/worker/calls/owner_turns.h"
#include "server/worker/calls/quiet_calls.h"

struct wake;

struct driver_call {
    /* The caller's. make: one step, on the caller thread, without locks held; returns true if
     * there are more. */
    bool (*make)(struct driver_call *call);
    struct quiet_caller caller;
    /* make may set it: its next step is made no earlier, ns of clock_now. Others go on. */
    uint64_t not_before;
    /* Private: */
    struct chain_link chain;
    uint64_t turn; /* when its next step was queued */
};

struct driver_calls {
    struct wake *wake;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct list firsts; /* of chains (chains.h): the calls of one client */
    struct queue done;  /* oldest first */
    uint64_t turn;      /* steps that were queued */
    struct owner_turns owners;
    bool stopped;
};

void driver_calls_open(struct driver_calls *calls, struct wake *wake);
/* No call is queued any more. */
void driver_calls_close(struct driver_calls *calls);

/* ---- the control thread ---- */

/* The call is the queue's until driver_calls_collect returns it. */
void driver_calls_leave(struct driver_calls *calls, struct driver_call *call);

/* A call that was made whole, the oldest first; NULL: there is none. */
struct driver_call *driver_calls_collect(struct driver_calls *calls);

/* ---- the caller thread; the control thread once that has ended ---- */

/* Makes the next step of a call; false: none is queued, or none may be made yet. Once the queue was
 * stopped, none is held back. */
bool driver_calls_make_next(struct driver_calls *calls);

/* Sleeps until there is a step that may be made. Returns false when the queue was stopped. */
bool driver_calls_wait(struct driver_calls *calls);

/* ---- whoever ends the caller thread ---- */

/* The thread ends after the step that it is at. Idempotent. */
void driver_calls_stop(struct driver_calls *calls);

#endif
