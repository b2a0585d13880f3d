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
 * Mirrors client/engine/stream.c:stream_push, common/ipc/ring.c:ring_publish,
 * common/ipc/ring.c:ring_consume, server/worker/control/control_memory.c:unmap_range,
 * server/worker/client/retire.c:retire_request (every ring's tail is noted, under
 * the client's lock), server/worker/client/retire.c:retire_covers (which copies may
 * still name the memory) and server/worker/client/retire.c:retire_ready (the device
 * has reached every value noted; of a client that is gone, every value submitted).
 *
 * Proved: nothing touches the memory once it is unmapped (or reused, which is the
 * same to whoever still holds its address); no copy is refused that was issued before
 * the free; the charge comes back, once, in every run, whether the client frees the
 * memory or dies at any point (DYING).
 *
 * Each of these removes one thing and must fail:
 *   NO_LOCK           the tails are noted and the memory marked in two steps
 *   NO_FENCE_PUBLISH  the tail of a push may become visible after the free request was sent
 *   NO_LOOKUP         the submitter does not look copies up
 *   NO_COVERS         every copy is refused once the memory is marked
 *   NO_OTHERS         the stream that freed is looked at, not all of them
 *   NO_WAIT           the memory is unmapped at once
 *   NO_STOP           (DYING) a dead client's memory is noted before the submitter left its rings
 *   NO_DROP           (DYING) a free keeps waiting for descriptors that will never be submitted
 */
#define STREAMS 2
#ifndef PUSHES
#define PUSHES 3
#endif

/* processors that store: producers 0 and 1 */
#define CPUS 2
#define TAIL(s) (s)
#define WORDS   STREAMS

#include "store_buffer.pml"

#define NOTHING 1 /* a rejected copy: its value completes, with an error */
#define TOUCH   2

byte submitted[STREAMS], completed[STREAMS];
byte noted[STREAMS];
bool dying; /* the memory is marked: retire_covers decides */
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

/* Looks a copy up and submits it under the client's lock, that is in one step. */
proctype submitter()
{
    do
    :: atomic { stop -> stopped = true; break }
    :: atomic { !stop && submitted[0] < LOAD(TAIL(0)) -> submitted[0]++; queue[0]!TOUCH }
    :: atomic {
            !stop && submitted[1] < LOAD(TAIL(1)) -> submitted[1]++;
            if
#ifdef NO_LOOKUP
            :: true -> queue[1]!TOUCH
#else
#ifdef NO_COVERS
            :: !dying -> queue[1]!TOUCH
            :: dying ->
#else
            :: !dying || submitted[1] <= noted[1] -> queue[1]!TOUCH
            :: dying && submitted[1] > noted[1] ->
#endif
                assert(submitted[1] > noted[1]);
                queue[1]!NOTHING
#endif
            fi
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
        /* unmap_range, retire_request */
#ifdef NO_LOCK
        atomic { noted[0] = LOAD(TAIL(0)); noted[1] = LOAD(TAIL(1)) };
        dying = true;
#else
        atomic { noted[0] = LOAD(TAIL(0)); noted[1] = LOAD(TAIL(1)); dying = true };
#endif
        if
#ifdef NO_WAIT
        :: true
#else
        :: READY /* retire_ready */
#endif
        :: dead -> goto ended
        fi
    :: dead ->
ended:
#ifdef NO_STOP
        atomic { noted[0] = submitted[0]; noted[1] = submitted[1] };
        stop = true;
        stopped;
#else
        stop = true; /* submitter_drop */
        stopped;
        /* What was not submitted yet is dropped: its values will never complete. */
#ifdef NO_DROP
        if
        :: dying
        :: else -> atomic { noted[0] = submitted[0]; noted[1] = submitted[1] }
        fi;
#else
        atomic { noted[0] = submitted[0]; noted[1] = submitted[1] };
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
        run store_buffer(0);
        run store_buffer(1);
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
