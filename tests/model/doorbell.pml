/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The doorbell: rings of one or two clients, their producers, and the submitter
 * that sleeps when there is nothing to do.
 *
 * Mirrors client/engine/stream.c:stream_push, common/ipc/ring.c:ring_publish,
 * common/ipc/ring.c:ring_consume, common/ipc/doorbell.c:doorbell_ring,
 * common/ipc/doorbell.c:doorbell_take, common/ipc/doorbell.c:doorbell_prepare_sleep and
 * common/ipc/doorbell.c:doorbell_cancel_sleep.
 *
 * Proved: no descriptor is read before it was written; every descriptor of a
 * living client is consumed, that is, the submitter is never asleep for good while
 * one waits; a client that dies at any point, in the middle of the handshake too, is
 * detached and holds up nobody.
 *
 * Options: CLIENTS=1 (two streams of one client, two threads) or 2 (one stream
 * each); LEVEL2=2 puts the streams' bits into two words of the second level
 * instead of one; DYING lets client 0 die at any time; PUSHES descriptors a stream
 * through a ring of ENTRIES.
 *
 * Each of these removes one thing and must fail:
 *   NO_FENCE_TAIL     ring_publish stores the tail without a fence before it loads the head
 *   NO_FENCE_HEAD     ring_consume stores the head without a fence before it loads the tail
 *   NO_FENCE_ASLEEP   doorbell_prepare_sleep stores asleep without a fence before its look
 *   NO_FENCE_PUBLISH  the tail may become visible before the descriptor
 *   NO_FENCE_LEVELS   the first level's bit may become visible before the second's
 *   NO_FENCE_BITS     doorbell_ring may load asleep before it has set the bits
 *   NO_RELOAD         ring_consume does not look at the tail again
 *   NO_LOOK           doorbell_prepare_sleep does not look at the bitmap again
 *   NO_DETACH         (DYING) nobody tells the submitter that the client is gone
 */
#ifndef CLIENTS
#define CLIENTS 1
#endif
#ifndef LEVEL2
#define LEVEL2 1
#endif
#define STREAMS 2
#ifndef PUSHES
#define PUSHES 3
#endif
#ifndef ENTRIES
#define ENTRIES 2 /* fewer than PUSHES, so that indices wrap and the ring is full at times */
#endif

#if CLIENTS == 2
#define CLIENT(s) (s)
#else
#define CLIENT(s) 0
#endif
#if LEVEL2 == 2
#define WORD(s) (s)
#else
#define WORD(s) 0
#endif

/* processors that store: producers 0 and 1, the submitter 2 */
#define CPUS 3
#define SUBMITTER 2

#define TAIL(s)     (s)
#define HEAD(s)     (STREAMS + (s))
#define SUMMARY(c)  (2 * STREAMS + (c))
#define LEVEL(c, w) (2 * STREAMS + 2 + 2 * (c) + (w))
#define ASLEEP(c)   (2 * STREAMS + 6 + (c))
#define SLOT(s, i)  (2 * STREAMS + 8 + ENTRIES * (s) + ((i) % ENTRIES))
#define WORDS       (4 * STREAMS + 8)

#include "store_buffer.pml"

bool edge[CLIENTS]; /* the client's eventfd was written since epoll last reported it */
bool control_edge;  /* the control thread's eventfd, never the client's to touch */
bool dead[CLIENTS], detach[CLIENTS], gone[CLIENTS];
bool finished[STREAMS];
byte consumed[STREAMS];
bool ended;

#define LIVING(s) (!dead[CLIENT(s)])

/* doorbell_ring */
inline ring_bell(s)
{
#ifdef NO_FENCE_BITS
    asleep = LOAD(ASLEEP(CLIENT(s)));
#endif
#ifdef NO_FENCE_LEVELS
    FETCH_OR(s, SUMMARY(CLIENT(s)), 1 << WORD(s));
    FETCH_OR(s, LEVEL(CLIENT(s), WORD(s)), 1 << s);
#else
    FETCH_OR(s, LEVEL(CLIENT(s), WORD(s)), 1 << s);
    FETCH_OR(s, SUMMARY(CLIENT(s)), 1 << WORD(s));
#endif
#ifndef NO_FENCE_BITS
    asleep = LOAD(ASLEEP(CLIENT(s)));
#endif
    if
    :: asleep ->
        EXCHANGE(s, ASLEEP(CLIENT(s)), 0, asleep);
        atomic {
            if
            :: asleep -> edge[CLIENT(s)] = true; asleep = 0
            :: else
            fi
        }
    :: else
    fi
}

/* stream_push, once for each descriptor: the slot holds the descriptor's number. */
proctype producer(byte s)
{
    byte tail, asleep;
    bool was_empty;
    {
        do
        :: tail < PUSHES ->
            /* ring_wait_room */
            (tail - LOAD(HEAD(s)) < ENTRIES);
            /* ring_publish */
#ifdef NO_FENCE_PUBLISH
            STORE_SEQ(s, TAIL(s), tail + 1);
            STORE_SEQ(s, SLOT(s, tail), tail + 1);
#else
            /* Straight to memory: stores leave the buffer in order, and nobody looks
             * at the slot before the tail. */
            mem[SLOT(s, tail)] = tail + 1;
#ifdef NO_FENCE_TAIL
            STORE(s, TAIL(s), tail + 1);
#else
            STORE_SEQ(s, TAIL(s), tail + 1);
#endif
#endif
            atomic {
                was_empty = LOAD(HEAD(s)) == tail;
                tail++
            };
            if
            :: was_empty -> was_empty = false; ring_bell(s)
            :: else
            fi
        :: else -> break
        od
    } unless {
        dead[CLIENT(s)]
    };
    atomic {
        finished[s] = true;
        tail = 0; /* fewer states for spin to tell apart */
        asleep = 0;
        was_empty = false
    }
}

/* The detached client's memory is unmapped; to spin, that is fewer states to tell apart. */
inline forget(c)
{
    edge[c] = false;
    idle[c] = false;
    mem[SUMMARY(c)] = 0;
    mem[LEVEL(c, 0)] = 0;
    mem[LEVEL(c, 1)] = 0;
    mem[ASLEEP(c)] = 0;
    w = 0;
    do
    :: w < STREAMS && CLIENT(w) == c ->
        mem[HEAD(w)] = 0;
        mem[TAIL(w)] = 0;
        heads[w] = 0;
        consumed[w] = 0;
        w++
    :: w < STREAMS && CLIENT(w) != c -> w++
    :: else -> break
    od;
    w = 0
}

proctype submitter()
{
    byte c, s, w, bits, word;
    byte heads[STREAMS];
    bool idle[CLIENTS];

    do
    ::
        /* epoll_wait: every client of the set that was reported is awake again. */
        c = 0;
        do
        :: atomic { c < CLIENTS && (gone[c] || !(edge[c] || detach[c])) -> c++ }
        :: atomic { c < CLIENTS && !gone[c] && edge[c] -> edge[c] = false; idle[c] = false };
            STORE(SUBMITTER, ASLEEP(c), 0) /* doorbell_cancel_sleep */
        :: atomic { c < CLIENTS && !gone[c] && detach[c] ->
               gone[c] = true;
               control_edge = false;
               forget(c)
           }
        :: atomic { c == CLIENTS -> c = 0; break }
        od;

        do
        :: atomic { c < CLIENTS && !idle[c] && !gone[c] -> w = 0 };
            /* doorbell_take */
            do
            :: atomic { w < LEVEL2 && !(LOAD(SUMMARY(c)) & (1 << w)) -> w++ }
            :: atomic { w < LEVEL2 && LOAD(SUMMARY(c)) & (1 << w) };
                FETCH_CLEAR(SUBMITTER, SUMMARY(c), 1 << w);
                atomic {
                    EXCHANGE(SUBMITTER, LEVEL(c, w), 0, word);
                    bits = bits | word;
                    word = 0;
                    w++
                }
            :: atomic { w == LEVEL2 -> w = 0; break }
            od;

            if
            :: bits ->
                do
                :: atomic { s < STREAMS && !(bits & (1 << s)) -> s++ }
                :: s < STREAMS && (bits & (1 << s)) && heads[s] != LOAD(TAIL(s)) ->
                    /* the submitter's copy of the descriptor */
                    atomic {
                        assert(dead[CLIENT(s)] || LOAD(SLOT(s, heads[s])) == heads[s] + 1);
                        heads[s] = heads[s] + 1;
                        consumed[s] = heads[s]
                    };
                    /* ring_consume */
#ifdef NO_FENCE_HEAD
                    STORE(SUBMITTER, HEAD(s), heads[s])
#else
                    STORE_SEQ(SUBMITTER, HEAD(s), heads[s])
#endif
#ifdef NO_RELOAD
                    ; s++
#endif
                :: atomic { s < STREAMS && (bits & (1 << s)) && heads[s] == LOAD(TAIL(s)) -> s++ }
                :: atomic { s == STREAMS -> s = 0; bits = 0; break }
                od
            :: else ->
                /* doorbell_prepare_sleep */
#ifdef NO_FENCE_ASLEEP
                STORE(SUBMITTER, ASLEEP(c), 1);
#else
                STORE_SEQ(SUBMITTER, ASLEEP(c), 1);
#endif
#ifdef NO_LOOK
                idle[c] = true
#else
                atomic {
                    if
                    :: LOAD(SUMMARY(c))
                    :: else -> idle[c] = true
                    fi
                };
                if
                :: !idle[c] -> STORE(SUBMITTER, ASLEEP(c), 0)
                :: else
                fi
#endif
            fi;
            c++
        :: atomic { c < CLIENTS && (idle[c] || gone[c]) -> c++ }
        :: atomic { c == CLIENTS -> c = 0; break }
        od;

        if
        :: (idle[0] || gone[0]) && (idle[CLIENTS - 1] || gone[CLIENTS - 1]) ->
            /* Nobody is in the scan set: epoll_wait without a limit. The second way
             * out is the end of the test; where neither opens, somebody waits for ever. */
            if
            :: (edge[0] && !gone[0]) || (edge[CLIENTS - 1] && !gone[CLIENTS - 1]) || control_edge
            :: finished[0] && finished[1] &&
               (!dead[0] || gone[0]) && (!dead[CLIENTS - 1] || gone[CLIENTS - 1]) &&
               (!LIVING(0) || consumed[0] == PUSHES) && (!LIVING(1) || consumed[1] == PUSHES) ->
                ended = true;
                break
            fi
        :: else
        fi
    od
}

#ifdef DYING
/* Client 0 is killed at any time; the supervisor notices and has it detached. */
proctype death()
{
    dead[0] = true;
#ifndef NO_DETACH
    atomic {
        detach[0] = true;
        control_edge = true
    }
#endif
}
#endif

/* When nothing can happen any more, the submitter has seen all there was. */
proctype watch()
{
    timeout -> assert(ended)
}

init {
    atomic {
        run store_buffer(0);
        run store_buffer(1);
        run store_buffer(SUBMITTER);
        run producer(0);
        run producer(1);
        run submitter();
        run watch();
#ifdef DYING
        run death()
#endif
    }
}
