/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Freeing memory under running work: one allocation of a client with two streams.
 *
 * Stream 0 launches kernels on the memory and then frees it, as a correct program
 * does; what a kernel touches cannot be known, so nobody checks it. Stream 1 belongs
 * to another thread that goes on copying to the memory without regard to the free;
 * copies are looked up when they are submitted. The device runs the streams in any
 * order. The control thread handles the free and the client's end.
 *
 * Mirrors client/stream.c:stream_push, common/ring.c:ring_publish,
 * common/ring.c:ring_consume, server/worker/memory.c:memory_free_request (forget the
 * allocation, then note every ring's tail) and server/worker/memory.c:memory_free_ready
 * (every stream's completed value has reached the one noted).
 *
 * Proved: nothing touches the memory once it is unmapped (or reused, which is the
 * same to whoever still holds its address); its charge comes back, once,
 * in every run, whether the client frees it, ends, or dies at any point (DYING).
 *
 * Each of these removes one thing and must fail:
 *   NO_FENCE_FORGET   memory_free_request reads the tails before the forgetting is visible
 *   NO_FENCE_PUBLISH  the tail of a push may become visible after the free request was sent
 *   NO_LOOKUP         the submitter does not look copies up
 *   NO_OTHERS         memory_free_ready looks at the stream that freed, not at all of them
 *   NO_WAIT           the memory is unmapped at once
 *   NO_STOP           (DYING) a dead client's memory is noted before the submitter left its rings
 *   NO_DROP           (DYING) a free that waits keeps waiting for descriptors that were dropped
 */
#define STREAMS 2
#ifndef PUSHES
#define PUSHES 3
#endif

/* processors that store: producers 0 and 1, the control thread 2 */
#define CPUS 3
#define CONTROL 2
#define TAIL(s) (s)
#define KNOWN   STREAMS /* the allocation is in the table that copies are looked up in */
#define WORDS   (STREAMS + 1)

#include "store_buffer.pml"

#define NOTHING 1 /* a rejected copy: its value completes, with an error */
#define TOUCH   2

byte submitted[STREAMS], completed[STREAMS];
byte noted[STREAMS];
chan queue[STREAMS] = [PUSHES] of { byte };
bool free_sent, dead, stop, stopped;
bool mapped = true;
byte charge = 1;

proctype producer(byte s)
{
    byte tail;
    {
        do
        :: tail < PUSHES ->
#ifdef NO_FENCE_PUBLISH
            STORE(s, TAIL(s), tail + 1);
#else
            STORE_SEQ(s, TAIL(s), tail + 1);
#endif
            tail++
        :: else -> break
        od;
        if
        :: s == 0 -> free_sent = true
        :: else
        fi
    } unless {
        dead
    };
    tail = 0
}

#ifdef DYING
proctype death()
{
    dead = true
}
#endif

proctype submitter()
{
    byte s, work;

    do
    :: atomic { stop -> stopped = true; break }
    :: atomic { !stop && submitted[0] < LOAD(TAIL(0)) -> s = 0; work = TOUCH };
        goto submit
    :: atomic { !stop && submitted[1] < LOAD(TAIL(1)) -> s = 1; work = NOTHING };
#ifdef NO_LOOKUP
        work = TOUCH;
#else
        atomic {
            if
            :: LOAD(KNOWN) -> work = TOUCH
            :: else
            fi
        };
#endif
submit:
        atomic {
            queue[s]!work;
            submitted[s]++;
            s = 0;
            work = 0
        }
    od
}

proctype device(byte s)
{
    byte work;

    do
    :: atomic { queue[s]?work -> assert(work != TOUCH || mapped) };
        atomic {
            assert(work != TOUCH || mapped);
            completed[s]++;
            work = 0
        }
    od
}

#ifdef NO_OTHERS
#define READY (completed[0] >= noted[0])
#else
#define READY (completed[0] >= noted[0] && completed[1] >= noted[1])
#endif

proctype control()
{
    if
    :: free_sent ->
        /* memory_free_request */
#ifdef NO_FENCE_FORGET
        STORE(CONTROL, KNOWN, 0);
#else
        STORE_SEQ(CONTROL, KNOWN, 0);
#endif
        noted[0] = LOAD(TAIL(0));
        noted[1] = LOAD(TAIL(1));
        if
#ifdef NO_WAIT
        :: true
#else
        :: READY /* memory_free_ready */
#endif
        :: dead -> goto ended
        fi
    :: dead ->
ended:
        /* What was not submitted yet is dropped: its values will never complete. */
#ifdef NO_STOP
        noted[0] = submitted[0];
        noted[1] = submitted[1];
        stop = true;
        stopped;
#else
        stop = true;
        stopped;
#ifdef NO_DROP
        if
        :: !LOAD(KNOWN)
        :: else -> noted[0] = submitted[0]; noted[1] = submitted[1]
        fi;
#else
        noted[0] = submitted[0];
        noted[1] = submitted[1];
#endif
#endif
        READY
    fi;
    mapped = false;
    charge--
}

/* When nothing can happen any more, the charge is back. */
proctype watch()
{
    timeout -> assert(charge == 0 && !mapped)
}

init {
    atomic {
        mem[KNOWN] = 1;
        run store_buffer(0);
        run store_buffer(1);
        run store_buffer(CONTROL);
        run producer(0);
        run producer(1);
        run submitter();
        run device(0);
        run device(1);
        run control();
        run watch();
#ifdef DYING
        run death()
#endif
    }
}
