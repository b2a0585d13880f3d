/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Waiting for a timeline: two streams of one client with a waiting thread each, the
 * submitter, the device that writes the completion words and can wake nobody, the
 * completer that wakes for it, and a supervisor that ends everything when the
 * worker dies.
 *
 * Mirrors common/ipc/timeline.c:timeline_wait_prepare, common/ipc/timeline.c:timeline_wait,
 * common/ipc/timeline.c:timeline_wait_done, common/ipc/timeline.c:timeline_fail,
 * common/ipc/doorbell.c:doorbell_ring (its bit alone; the sleep handshake is
 * doorbell.pml's), client/engine/stream.c:stream_push, server/worker/run/submitter_visit.c:mark_watched,
 * server/worker/run/command.c:command_complete, server/worker/run/completer.c:completer_look,
 * server/worker/calls/wake.c:wake_completer and server/worker/run/completer.c:rest_until_woken.
 *
 * Proved: a waiter returns only when its value is reached or the fault word is set,
 * and never sleeps for good after either. The waiter's sleep is bounded in the
 * program; here the bound is allowed to pass only once the fault word is set, so that
 * no wake-up for a completion can hide behind it. A fault needs the bound: the fault
 * word is not the word that is slept on. The completer's own rest has no bound here.
 *
 * What mark_watched wakes itself, where the device was faster than it, is left out: a wake-up
 * more can't break what is proved, and nothing here may rely on it.
 *
 * Polling appears as waiting for what is polled, or a poller that never finds
 * anything would look alive.
 *
 * WAITS: how many values thread 0 waits for, one after the other; thread 1 waits for
 * one, or with ONE only pushes. DYING: the worker dies at any time.
 *
 * Each of these removes one thing and must fail:
 *   NO_FENCE_ANNOUNCE  the announcement may become visible after the doorbell's bit
 *   NO_FENCE_SHADOW      the device may write the private shadow before the public word
 *   NO_FENCE_REST      the completer says that it rests without a fence before its last look
 *   NO_LOOK            the completer does not look again before it rests
 *   NO_WAKE_AGAIN      a stream that was done before it was watched wakes nobody
 *   NO_FENCE_SLEEP     the value slept on is read anew after the look at it
 *   NO_FENCE_TAKE      the submitter looks for waiters before it takes the doorbell's bits
 *   NO_BOUND           (DYING) the sleep has no bound
 *   NO_FAULT           (DYING) the supervisor wakes everyone but sets no fault word
 */
#define STREAMS 2
#ifndef WAITS
#define WAITS 2
#endif

/* processors that store: the waiters 0 and 1, the completer 2. A waiter's only buffered
 * stores are its announcements, and only where NO_FENCE_ANNOUNCE takes their order away. */
#define CPUS 3
#define COMPLETER 2
#define WAITER(s) (s)
#define RESTS 2
#define WORDS 3

#include "store_buffer.pml"

/* shared with the client */
byte pushed[STREAMS];    /* the ring's tail */
bool bell[STREAMS];      /* the doorbell's bit */
byte completed[STREAMS]; /* the public word */
bool fault;
bool asleep[STREAMS];    /* in FUTEX_WAIT on completed[s] */

/* the worker's own */
byte written[STREAMS];   /* the last value that the device was told to write */
byte shadow[STREAMS];      /* the private word */
bool locked;             /* client->lock */
bool watched[STREAMS];
bool in_use;
byte woken[STREAMS];
bool noted;              /* the completer's bell rang since it was last read */
bool resting;            /* the completer is in FUTEX_WAIT on its bell */

bool killed;
byte returned;

inline futex_wake(s)
{
    asleep[s] = false
}

proctype waiter(byte s)
{
    byte value, reached;

    do
    :: value < (s == 0 -> WAITS : 1) ->
        value++;
        /* stream_push */
        atomic { pushed[s] = value; bell[s] = true };
#ifdef ONE
        if
        :: s == 1 -> break
        :: else
        fi;
#endif
        /* timeline_wait_prepare */
#ifdef NO_FENCE_ANNOUNCE
        STORE(s, WAITER(s), 1);
#else
        STORE_SEQ(s, WAITER(s), 1);
#endif
        if
        :: completed[s] >= value -> goto done
        :: else
        fi;
        if
        :: fault -> goto done
        :: else -> bell[s] = true /* doorbell_ring */
        fi;
        do
        ::
            reached = completed[s];
            if
            :: reached >= value || fault -> break
            :: else
            fi;
#ifdef NO_FENCE_SLEEP
            reached = completed[s];
#endif
            /* FUTEX_WAIT: the kernel compares and falls asleep in one step. */
            atomic {
                asleep[s] = completed[s] == reached;
                reached = 0
            };
            if
            :: !asleep[s]
#ifndef NO_BOUND
            :: atomic { fault -> asleep[s] = false }
#endif
            fi
        od;
done:
        /* timeline_wait_done */
        atomic {
            assert(completed[s] >= value || fault);
            reached = 0
        };
        STORE_SEQ(s, WAITER(s), 0);
        if
        :: fault -> break
        :: else
        fi
    :: else -> break
    od;
    atomic { returned++; value = 0 }
}

/* A killed worker does nothing any more: each of its steps asks first. */
#define STEP(statement) atomic { !killed -> statement }

/* The submitter launches what it finds, and a completion behind it. */
proctype submitter()
{
    byte s;
    bool waited;

    do
    ::
        atomic {
            !killed && !locked && (bell[0] || bell[1]);
            locked = true;
            if
            :: bell[0] -> s = 0
            :: bell[1] -> s = 1
            fi;
#ifdef NO_FENCE_TAKE
            waited = LOAD(WAITER(s))
        };
        STEP(bell[s] = false);
#else
            bell[s] = false /* doorbell_take */
        };
#endif
        STEP(written[s] = pushed[s]); /* ring_consume, command_complete */
#ifndef NO_FENCE_TAKE
        STEP(waited = LOAD(WAITER(s)));
#endif
        if
        :: waited -> /* mark_watched */
            atomic { !killed -> watched[s] = true; in_use = true; waited = false };
            if /* wake_completer */
            :: atomic { !killed && LOAD(RESTS) };
                atomic { !killed -> noted = true; resting = false }
            :: !killed && !LOAD(RESTS)
            fi
        :: else -> STEP(in_use = true)
        fi;
        atomic { !killed -> locked = false; s = 0 }
    od
}

/* One stream memory operation batch writes the public word, then the shadow. */
proctype device(byte s)
{
    byte value;

    do
    :: atomic { !killed && written[s] > completed[s] -> value = written[s] };
        if
        :: STEP(completed[s] = value); atomic { !killed -> shadow[s] = value; value = 0 }
#ifdef NO_FENCE_SHADOW
        :: STEP(shadow[s] = value); atomic { !killed -> completed[s] = value; value = 0 }
#endif
        fi
    od
}

/* completer_look, for one stream */
inline look(s)
{
    done = shadow[s] >= written[s];
#ifdef NO_WAKE_AGAIN
    wake[s] = watched[s] && shadow[s] != woken[s];
#else
    wake[s] = watched[s] && (done || shadow[s] != woken[s]);
#endif
    woken[s] = shadow[s];
    watched[s] = watched[s] && !done;
    busy = busy || !done
}

/* Under the lock only the device moves meanwhile, and a shadow that it writes during the
 * look might as well have been written before or after: so the look is one step. */
inline look_at_all()
{
    if
    :: atomic { !killed && in_use };
        atomic {
            !killed && !locked;
            look(0);
            look(1);
            urgent = watched[0] || watched[1];
            in_use = busy || urgent;
            busy = false;
            done = false
        };
        do
        :: wake[0] -> atomic { !killed -> futex_wake(0); wake[0] = false }
        :: wake[1] -> atomic { !killed -> futex_wake(1); wake[1] = false }
        :: else -> break
        od
    :: atomic { !killed && !in_use -> urgent = false }
    fi
}

#define NEWS(s) (watched[s] && (shadow[s] >= written[s] || shadow[s] != woken[s]))

proctype completer()
{
    bool urgent, done, busy, wake[STREAMS];

    do
    ::
        look_at_all();
        if
        :: urgent -> !killed && (NEWS(0) || NEWS(1))
        :: else -> /* rest */
            STEP(noted = false);
#ifdef NO_FENCE_REST
            STEP(STORE(COMPLETER, RESTS, 1));
#else
            STEP(STORE_SEQ(COMPLETER, RESTS, 1));
#endif
#ifndef NO_LOOK
            look_at_all();
#endif
            if
            :: !urgent -> atomic { !killed -> resting = !noted }
            :: else
            fi;
            !killed && !resting;
            STEP(STORE_SEQ(COMPLETER, RESTS, 0))
        fi
    od
}

#ifdef DYING
proctype supervisor()
{
    killed = true;
    /* timeline_fail */
#ifndef NO_FAULT
    fault = true;
#endif
    futex_wake(0);
    futex_wake(1)
}
#endif

/* When nothing can happen any more, nobody may be asleep. */
proctype watch()
{
    timeout -> assert(returned == STREAMS)
}

init {
    atomic {
#ifdef NO_FENCE_ANNOUNCE
        run store_buffer(0);
        run store_buffer(1);
#endif
#ifdef NO_FENCE_REST
        run store_buffer(COMPLETER);
#endif
        run waiter(0);
        run waiter(1);
        run submitter();
        run device(0);
        run device(1);
        run completer();
        run watch();
#ifdef DYING
        run supervisor()
#endif
    }
}
