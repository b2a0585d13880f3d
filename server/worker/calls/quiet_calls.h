/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quiet_calls: calls of the driver that wait for the device, queued until nothing runs on it.
 *
 * Such a call would keep its thread for as long as anybody's kernel runs, and with it everybody who
 * needs the context. So no thread makes one by itself: it leaves it here, and the quiet thread
 * (quiet_window.h) makes it in a quiet window. Calls are made by turns of their owners, those of
 * one owner in order.
 *
 * The queue has a lock of its own, which is not held while a call is made. No other lock is taken
 * under it.
 */
#ifndef GPUSHARE_SERVER_WORKER_CALLS_QUIET_CALLS_H
#define GPUSHARE_SERVER_WORKER_CALLS_QUIET_CALLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/list.h"
#include "server/worker/calls/chains.h"
#include "server/worker/calls/owner_turns.h"

/* A call that nobody waits for asks for a window by itself after so long: charges hang on it. */
#define QUIET_CALLS_LAZY_NS UNITS_SECOND

/* After so long a call waits for no client's priority any more. */
#define QUIET_CALLS_PATIENCE_NS UNITS_SECOND

struct wake;
struct worker;

/* The client that a call is made for. */
struct quiet_caller {
    uint32_t client, owner;
    uint32_t level; /* of priority, 0 the most urgent */
    bool restores;  /* the client had it from an earlier worker, and waits for all that it had */
};

/* How a call asks for a window. Of calls with the same claim, none asks before an older one. */
enum quiet_claim {
    QUIET_ASKS,
    QUIET_LAZY,    /* after QUIET_CALLS_LAZY_NS */
    QUIET_PATIENT, /* never */
};

struct quiet_call {
    /* The caller's: */
    void (*make)(struct quiet_call *call); /* quiet thread, without locks held */
    /* Of a deferred call: control thread, after it was made; frees it. Returns 0 or -errno of an
     * answer that could not be sent. */
    int (*end)(struct worker *worker, struct quiet_call *call);
    struct quiet_caller caller;
    bool patient;   /* of a deferred call: it rides along, and never asks for a window */
    bool droppable; /* deferred, and not made for a client that leaves */
    /* Private: */
    struct chain_link chain;
    enum quiet_claim claim;
    uint64_t turn;    /* when it was queued */
    uint64_t asks_at; /* ns: from then on it may ask for a window; UINT64_MAX: never */
    bool awaited;     /* a thread waits in quiet_calls_make */
    bool over, made;
};

struct quiet_calls {
    struct wake *wake;
    pthread_mutex_t lock;
    pthread_cond_t queue_changed; /* for the quiet thread */
    pthread_cond_t over;          /* for those who wait: a call was made, or a window ended */
    struct list firsts;           /* of chains (chains.h): the calls of one client and one claim */
    struct queue done;            /* oldest first */
    uint64_t turn;                /* calls that were queued */
    struct owner_turns owners;
    uint32_t working; /* threads in quiet_calls_work_begin .. end */
    bool closed;      /* no work may begin */
    bool nudged;
    bool stopped;
};

/* The calls that wait, for the decision. */
struct quiet_calls_view {
    bool any;           /* calls wait */
    bool asks;          /* of them, one may ask for a window now */
    uint64_t asks_next; /* when the next one may; UINT64_MAX */
    uint32_t owner;     /* of the oldest call */
    bool working;
};

void quiet_calls_open(struct quiet_calls *calls, struct wake *wake);
/* No call is queued and no thread waits any more. */
void quiet_calls_close(struct quiet_calls *calls);

/* ---- any thread but control and submitter ---- */

/* Blocks until the call was made; false: it was not and never will be. The call asks for a window
 * at once. */
bool quiet_calls_make(struct quiet_calls *calls, struct quiet_call *call);

/* Work on the device that is no client's lies between these two, which wait for an open window to
 * end. */
void quiet_calls_work_begin(struct quiet_calls *calls);
void quiet_calls_work_end(struct quiet_calls *calls);
/* As quiet_calls_work_begin, but returns false where that would wait. */
bool quiet_calls_work_try(struct quiet_calls *calls);

/* ---- the control thread ---- */

/* The call rides along in the next window. It is the queue's until quiet_calls_collect returns it;
 * once the quiet thread has ended, it is made here and now. asks: somebody waits for it. */
void quiet_calls_defer(struct quiet_calls *calls, struct quiet_call *call, bool asks);

/* A deferred call that was made, the oldest first; NULL: there is none. */
struct quiet_call *quiet_calls_collect(struct quiet_calls *calls);

/* The client leaves: the threads that wait for a call of it that has not begun go on without, and
 * calls that can be dropped are collected unmade. */
void quiet_calls_forget(struct quiet_calls *calls, uint32_t client);

/* Whether a call of the client is queued that asks for a window. */
bool quiet_calls_waits(struct quiet_calls *calls, uint32_t client);

/* ---- any thread, whatever locks it holds ---- */

/* The quiet thread looks at once. */
void quiet_calls_nudge(struct quiet_calls *calls);

/* ---- the quiet thread ---- */

/* Sleeps until something is queued, the queue is stopped or the time has come (ns of
 * clock_now). Returns false when it was stopped. */
bool quiet_calls_wait(struct quiet_calls *calls, uint64_t until);

void quiet_calls_look(struct quiet_calls *calls, uint64_t now, struct quiet_calls_view *view);

/* Shows each call that may ask for a window now. Under the lock of the queue. */
void quiet_calls_each_asking(struct quiet_calls *calls, uint64_t now,
                             void (*see)(void *context, const struct quiet_caller *caller,
                                         uint64_t asks_at),
                             void *context);

/* No work may begin, or it may again. */
void quiet_calls_shut(struct quiet_calls *calls, bool closed);

/*
 * Makes the next call; false: there is none. A window has little time, so the order says which call
 * has to wait for another one: first the most urgent of those that may ask for a window, then those
 * that ride along, and patient ones last. A call that has waited for QUIET_CALLS_PATIENCE_NS is as
 * urgent as any. Of calls that are equally urgent the next is the oldest of the owner that was
 * served longest ago.
 *
 * now: ns of clock_now. *owner, unless owner is NULL, becomes the call's owner.
 */
bool quiet_calls_make_next(struct quiet_calls *calls, uint64_t now, uint32_t *owner);

/* ---- whoever ends the quiet thread ---- */

/* No call is made in a window from now on; whoever waits goes on without. Idempotent. */
void quiet_calls_stop(struct quiet_calls *calls);

/* The quiet thread has ended and nothing runs on the device: makes what is queued. Control thread.
 */
void quiet_calls_make_rest(struct quiet_calls *calls);

#endif
