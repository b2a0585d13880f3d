/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Waiting for a timeline: two streams of one client with a waiting thread each, the
 * submitter, the device that writes the completion words and can wake nobody, the
 * completer that wakes for it, and a supervisor that ends everything when the
 * worker dies.
 *
 * Mirrors common/timeline.c:timeline_wait_prepare, common/timeline.c:timeline_wait,
 * common/timeline.c:timeline_wait_done, common/timeline.c:timeline_fail,
 * common/doorbell.c:doorbell_ring (its bit alone; the sleep handshake is
 * doorbell.pml's), client/stream.c:stream_push and
 * server/worker/completer.c:completer_poll.
 *
 * Proved: a waiter returns only when its value is reached or the fault word is set,
 * and never sleeps for good after either. The
 * waiter's sleep is bounded in the program; here the bound is allowed to pass only
 * once the fault word is set, so that no wake-up for a completion can hide behind it.
 * A fault needs the bound: the fault word is not the word that is slept on.
 *
 * Polling appears as waiting for what is polled, or a poller that never finds
 * anything would look alive.
 *
 * WAITS: how many values thread 0 waits for, one after the other; thread 1 waits for
 * one. DYING: the worker dies at any time.
 *
 * Each of these removes one thing and must fail:
 *   NO_FENCE_ANNOUNCE  the announcement may become visible after the doorbell's bit
 *   NO_FENCE_TWIN      the device may write the private twin before the public word
 *   NO_FENCE_KICK      the completer forgets the kick after it looked for waiters, not before
 *   NO_FENCE_SLEEP     the value slept on is read anew after the look at it
 *   NO_FENCE_WRITE     the submitter looks for waiters before it takes the doorbell's bits
 *   NO_BOUND           (DYING) the sleep has no bound
 *   NO_FAULT           (DYING) the supervisor wakes everyone but sets no fault word
 */
#define STREAMS 2
#ifndef WAITS
#define WAITS 2
#endif

/* processors that store: the waiters 0 and 1; a waiter's announcements are its only
 * buffered stores, and only where NO_FENCE_ANNOUNCE takes their order away */
#define CPUS 2
#define WAITER(s) (s)
#define WORDS 2

#include "store_buffer.pml"

byte pushed[STREAMS];    /* the ring's tail */
bool bell[STREAMS];      /* the doorbell's bit */
byte asked[STREAMS];     /* the value that the submitter had the device write */
byte completed[STREAMS]; /* the public word */
byte twin[STREAMS];      /* the private one */
bool fault;
bool kick;               /* the completer is to look again */
bool asleep[STREAMS];    /* in FUTEX_WAIT on completed[s] */
bool killed;
byte returned;

#define WAITERS (LOAD(WAITER(0)) || LOAD(WAITER(1)))

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

/* The submitter launches what it finds and has the timeline written only for waiters. */
proctype submitter()
{
    byte s, value;

    do
    ::
        /* doorbell_take */
        atomic {
            !killed && (bell[0] || bell[1]);
            if
            :: bell[0] -> s = 0
            :: bell[1] -> s = 1
            fi;
#ifdef NO_FENCE_WRITE
            value = LOAD(WAITER(s))
        };
        atomic {
            !killed;
            bell[s] = false;
            if
            :: value -> value = pushed[s]
            :: else
            fi
        };
#else
            bell[s] = false
        };
        STEP(value = pushed[s]); /* ring_consume */
        atomic {
            !killed;
            if
            :: LOAD(WAITER(s))
            :: else -> value = 0
            fi
        };
#endif
        if
        :: value -> STEP(asked[s] = value); STEP(kick = true)
        :: else
        fi;
        atomic { s = 0; value = 0 }
    od
}

/* One stream memory operation batch writes the public word, then the twin. */
proctype device(byte s)
{
    byte value;

    do
    :: atomic { !killed && asked[s] > completed[s] -> value = asked[s] };
        if
        :: STEP(completed[s] = value); atomic { !killed -> twin[s] = value; value = 0 }
#ifdef NO_FENCE_TWIN
        :: STEP(twin[s] = value); atomic { !killed -> completed[s] = value; value = 0 }
#endif
        fi
    od
}

/* completer_poll */
proctype completer()
{
    byte woken[STREAMS];

    do
    :: atomic {
            !killed && kick;
#ifndef NO_FENCE_KICK
            kick = false
#endif
        };
        do
        :: atomic { !killed && !WAITERS -> break }
        :: atomic { !killed && LOAD(WAITER(0)) && twin[0] > woken[0] -> woken[0] = twin[0] };
            STEP(futex_wake(0))
        :: atomic { !killed && LOAD(WAITER(1)) && twin[1] > woken[1] -> woken[1] = twin[1] };
            STEP(futex_wake(1))
        od;
#ifdef NO_FENCE_KICK
        STEP(kick = false)
#endif
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
