/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A full ring: its producer sleeps on the head until the submitter has consumed.
 *
 * Mirrors client/engine/stream.c:stream_push, common/ipc/ring.c:ring_room,
 * common/ipc/ring.c:ring_wait_room, common/ipc/ring.c:ring_publish and
 * common/ipc/ring.c:ring_consume, and common/ipc/timeline.c:timeline_fail where the server
 * dies (DYING).
 *
 * Proved: all descriptors are pushed and consumed in order, none overwritten before it
 * was read, and the producer never sleeps for good while there is room. As in
 * waiter.pml the sleep's bound may pass only once the fault word is set.
 *
 * Each of these removes one thing and must fail:
 *   NO_FENCE_WAITER  ring_wait_room announces itself without a fence before its look
 *   NO_FENCE_HEAD    ring_consume stores the head without a fence before it looks for a waiter
 *   NO_BOUND         (DYING) the sleep has no bound
 */
#define ENTRIES 2
#define PUSHES  6

/* processors that store: the producer 0, the submitter 1 */
#define CPUS 2
#define PRODUCER 0
#define SUBMITTER 1
#define TAIL   0
#define HEAD   1
#define WAITER 2
#define SLOT(i) (3 + (i) % ENTRIES)
#define WORDS  (3 + ENTRIES)

#include "store_buffer.pml"

bool asleep, fault, dead, finished;
byte consumed;

proctype producer()
{
    byte tail, head;

    do
    :: tail < PUSHES && tail - head < ENTRIES ->
        mem[SLOT(tail)] = tail + 1;
        atomic { STORE_SEQ(PRODUCER, TAIL, tail + 1); tail++ }
    :: tail < PUSHES && tail - head == ENTRIES ->
        /* ring_room looks again, then ring_wait_room */
        head = LOAD(HEAD);
        if
        :: tail - head == ENTRIES ->
#ifdef NO_FENCE_WAITER
            STORE(PRODUCER, WAITER, 1);
#else
            STORE_SEQ(PRODUCER, WAITER, 1);
#endif
            if
            :: fault -> break
            :: else
            fi;
            if
            :: LOAD(HEAD) == head ->
                /* FUTEX_WAIT */
                atomic { asleep = LOAD(HEAD) == head };
                if
                :: !asleep
#ifndef NO_BOUND
                :: atomic { fault -> asleep = false }
#endif
                fi
            :: else
            fi;
            STORE(PRODUCER, WAITER, 0);
            if
            :: fault -> break
            :: else
            fi
        :: else
        fi
    :: tail == PUSHES -> break
    od;
    finished = true
}

/* The submitter; its own sleep is doorbell.pml's. */
proctype submitter()
{
    byte head;

    do
    :: atomic { !dead && LOAD(TAIL) != head };
        atomic {
            assert(LOAD(SLOT(head)) == head + 1);
            head++;
            consumed = head
        };
#ifdef NO_FENCE_HEAD
        STORE(SUBMITTER, HEAD, head);
#else
        STORE_SEQ(SUBMITTER, HEAD, head);
#endif
        if
        :: atomic { !dead && LOAD(WAITER) }; /* the look, and the wake are two steps */
            atomic { !dead -> asleep = false }
        :: !dead && !LOAD(WAITER)
        fi
    od
}

#ifdef DYING
proctype supervisor()
{
    dead = true;
    fault = true;
    asleep = false
}
#endif

/* When nothing can happen any more, the producer is through, or was told why not. */
proctype watch()
{
    timeout -> assert(finished && (dead || consumed == PUSHES))
}

init {
    atomic {
        run store_buffer(PRODUCER);
        run store_buffer(SUBMITTER);
        run producer();
        run submitter();
        run watch();
#ifdef DYING
        run supervisor()
#endif
    }
}
