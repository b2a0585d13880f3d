/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * wake: how the worker's threads wake one another.
 *
 * A leaf below all threads: none of them needs to know another one's file. wake_control,
 * wake_submitter, wake_submitter_before and wake_completer may be called by any thread, whatever
 * locks it holds; the calls in a thread's section are that thread's own.
 *
 * All accesses are sequentially consistent, since each handshake is one: a waker changes its
 * subject (a client's mark, the gate's time, client->signals) and then looks whether the thread
 * rests; the thread says that it rests and then looks at the subject. So one of the two sees the
 * other's write. tests/model/ has the completer's.
 */
#ifndef GPUSHARE_SERVER_WORKER_WAKE_H
#define GPUSHARE_SERVER_WORKER_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How the completer rests; see completer.h. */
enum wake_rest { WAKE_POLLING, WAKE_TICKING, WAKE_ASLEEP };

struct wake {
    int control_event;                /* eventfd: something is ready for the control thread */
    int submitter_event;              /* eventfd: others have something for the submitter */
    _Atomic uint32_t submitter_noted; /* wake_submitter was called since it last looked */
    _Atomic uint32_t submitter_asleep;
    _Atomic uint64_t submitter_until; /* for how long, on timeline_now's clock */
    _Atomic uint32_t completer_bell;  /* futex */
    _Atomic uint32_t completer_rest;  /* enum wake_rest */
};

/* No descriptors: nothing is written to anybody. */
void wake_open(struct wake *wake);
/* Makes the control thread's eventfd, the submitter's. 0 or -errno. */
int wake_control_open(struct wake *wake);
int wake_submitter_open(struct wake *wake);
/* Once all threads have ended: any of them may write to the others' descriptors. Idempotent. */
void wake_close(struct wake *wake);

/* ---- any thread ---- */

/* The control thread has something to look at. */
void wake_control(struct wake *wake);

/* The submitter looks at the clients that are marked or leave, even if it slept. */
void wake_submitter(struct wake *wake);

/* Wakes the submitter if it sleeps longer than this: gate_next, after the gate was told something.
 */
void wake_submitter_before(struct wake *wake, uint64_t next);

/* After client_signal_completer: work is in flight. urgent: somebody waits for its end. */
void wake_completer(struct wake *wake, bool urgent);

/* Whether the submitter sleeps. */
bool wake_submitter_sleeps(const struct wake *wake);

/* ---- the control thread ---- */

/* It looks from now on: what comes later writes the eventfd again. */
void wake_control_taken(struct wake *wake);

/* ---- the submitter ---- */

/* Whether wake_submitter was called since this was last asked. */
static inline bool wake_submitter_taken(struct wake *wake)
{
    /* Nearly always 0: the exchange, which takes the line, is for the rare other case. */
    return atomic_load_explicit(&wake->submitter_noted, memory_order_relaxed) &&
           atomic_exchange(&wake->submitter_noted, 0);
}

/* It is about to sleep until then; false: not now, wake_submitter was called meanwhile. */
bool wake_submitter_rests(struct wake *wake, uint64_t until);
void wake_submitter_up(struct wake *wake);

/* ---- the completer ---- */

/* It is about to rest in this way. Returns what wake_completer_pause takes: a call of
 * wake_completer after this ends the pause, or keeps it from beginning. */
uint32_t wake_completer_rests(struct wake *wake, enum wake_rest how);
/* Until it is woken, or for this time. 0: without end. */
void wake_completer_pause(struct wake *wake, uint32_t seen, uint64_t nanoseconds);
void wake_completer_up(struct wake *wake);

/* ---- a thread that ends the completer ---- */

void wake_completer_always(struct wake *wake);

#endif
