/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * wake: how the worker's threads wake one another.
 *
 * This file lies below all threads, so that no thread needs another one's file. Any thread may call
 * wake_control, wake_submitter, wake_submitter_before and wake_completer, whatever locks it holds.
 * The calls in a thread's own section are for that thread alone.
 *
 * Every access is sequentially consistent, because each wake-up is a handshake. The waker changes
 * its subject (a client's mark, the gate's time, client->signals) and then reads whether the thread
 * rests. The thread writes that it rests and then reads the subject. So at least one of the two
 * sees the other's write. tests/model/ has a model of the completer's handshake.
 */
#ifndef GPUSHARE_SERVER_WORKER_CALLS_WAKE_H
#define GPUSHARE_SERVER_WORKER_CALLS_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

/* How the completer rests; see completer.h. */
enum wake_rest { WAKE_POLLING, WAKE_TICKING, WAKE_ASLEEP };

struct wake {
    int control_event;                /* eventfd: the control thread has something to look at */
    int submitter_event;              /* eventfd: another thread has something for the submitter */
    _Atomic uint32_t submitter_noted; /* wake_submitter was called since the submitter looked */
    _Atomic uint32_t submitter_asleep;
    _Atomic uint64_t submitter_until; /* end of its sleep, on clock_now's clock */
    _Atomic uint32_t completer_bell;  /* futex; counts the calls that woke the completer */
    _Atomic uint32_t completer_rest;  /* enum wake_rest */
};

/* Sets the start values. There are no descriptors yet, so no wake-up writes to any. */
void wake_open(struct wake *wake);
/* Make the eventfd of the control thread and of the submitter. Return 0 or -errno. */
int wake_control_open(struct wake *wake);
int wake_submitter_open(struct wake *wake);
/* Closes both descriptors. All threads must have ended, since any of them may write to the
 * descriptors of the others. Idempotent. */
void wake_close(struct wake *wake);

/* ---- any thread ---- */

/* Tells the control thread that it has something to look at. */
void wake_control(struct wake *wake);

/* Has the submitter look at the clients that are marked or LEAVING, and wakes it if it sleeps. */
void wake_submitter(struct wake *wake);

/* Wakes the submitter if it sleeps beyond this time on clock_now's clock. next is gate_next
 * after the gate was told something. */
void wake_submitter_before(struct wake *wake, uint64_t next);

/* Wakes the completer for work in flight, after client_signal_completer. If urgent, a thread waits
 * for the end of that work, so a completer that only ticks is woken too. */
void wake_completer(struct wake *wake, bool urgent);

/* Whether the submitter sleeps, or is about to. */
bool wake_submitter_sleeps(const struct wake *wake);

/* ---- the control thread ---- */

/* Empties the eventfd before the thread looks: a later wake_control writes it again. */
void wake_control_taken(struct wake *wake);

/* ---- the submitter ---- */

/* Whether wake_submitter was called since the last call of this function. */
static inline bool wake_submitter_taken(struct wake *wake)
{
    /* Nearly always 0: the exchange, which takes the line, is for the rare other case. */
    return atomic_load_explicit(&wake->submitter_noted, memory_order_relaxed) &&
           atomic_exchange(&wake->submitter_noted, 0);
}

/* Announces that the submitter is going to sleep until that time. False: it must not sleep, since
 * wake_submitter was called meanwhile. wake_submitter_up ends the announcement in both cases. */
bool wake_submitter_rests(struct wake *wake, uint64_t until);
void wake_submitter_up(struct wake *wake);

/* ---- the completer ---- */

/* Announces that the completer is going to rest in this way. Returns a value for
 * wake_completer_pause: a call of wake_completer after this ends the pause, or keeps it from
 * beginning. wake_completer_up ends the announcement. */
uint32_t wake_completer_rests(struct wake *wake, enum wake_rest how);
/* Pauses until the completer is woken, or for this time. 0: without a time limit. */
void wake_completer_pause(struct wake *wake, uint32_t seen, uint64_t nanoseconds);
void wake_completer_up(struct wake *wake);

/* ---- a thread that stops the completer ---- */

/* Ends the completer's rest, whatever kind it is. */
void wake_completer_always(struct wake *wake);

#endif
