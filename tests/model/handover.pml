/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A device's workers, one after the other; processes that a worker began and that keep the device's
 * descriptors; the supervisor; and CLIENTS clients. A worker may die between any two of its steps, its
 * child lives on for a while, and a client may leave at any moment. Each client makes one request.
 *
 * Mirrors server/supervisor/device/worker_process.c:process_reap,
 * server/supervisor/device/worker_process.c:barrier_ended,
 * server/supervisor/device/worker_process.c:end_when_alone,
 * server/supervisor/session/restore.c:session_restore_hold,
 * server/supervisor/session/restore.c:session_restore_all,
 * server/supervisor/session/restore.c:steps_advance and
 * server/supervisor/session/restore.c:resume.
 *
 * Proved: nothing of a dead worker writes when the next one has begun; no client is served by two
 * workers, or by one that has not all of it; a request has its effect once in the worker that the
 * client ends with; each client that stays is served with its request answered; a worker has nothing of
 * a client that left.
 *
 * Options: CLIENTS; DEATHS of workers.
 *
 * Each of these removes one thing and must fail:
 *   NO_PIPE     the next worker begins when the process is reaped, whatever inherited the device
 *   NO_REAP     the next worker begins when the pipe has ended, and the process may be there still
 *   NO_HOLD     a request that a lost worker did not answer is not sent again
 *   NO_STEPS    a client is resumed without an answer about its objects
 *   NO_RECORD   what a request made is not recorded
 *   NO_ANEW     a client whose worker dies while it is told goes on in the middle
 *   NO_LEAVE    a client that left while there was no worker is told to the next one
 */
#ifndef CLIENTS
#define CLIENTS 1
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#define WORKERS (DEATHS + 1)
#define QUEUE   (4 * CLIENTS)

mtype = { ATTACH, OBJECTS, RESUME, REQUEST, DETACH };

/* A worker's socket is new, so what lies in the old one is gone. */
typedef ends { chan to = [QUEUE] of { mtype, byte, byte }; chan from = [QUEUE] of { mtype, byte } }
ends socket[WORKERS];

typedef row { bool attached[CLIENTS]; bool served[CLIENTS]; byte has[CLIENTS] }
row at[WORKERS];
bool process[WORKERS], pipe[WORKERS], child[WORKERS];
byte latest, deaths; /* the worker that began last */

/* The clients; what the supervisor has of them. */
bool asked[CLIENTS], answered[CLIENTS], left[CLIENTS];
bool held[CLIENTS], taken[CLIENTS], gone[CLIENTS];
byte step[CLIENTS], recorded[CLIENTS];

/* Whatever a worker or its child does may write to the device. */
#define WRITES(me) assert(latest == me)

inline take(me, what, who, count)
{
    if
    :: what == ATTACH ->
        assert(!at[me].attached[who]);
        at[me].attached[who] = true;
        socket[me].from!ATTACH(who)
    :: what == OBJECTS ->
        assert(at[me].attached[who]);
        at[me].has[who] = at[me].has[who] + count;
        socket[me].from!OBJECTS(who)
    :: what == RESUME ->
        assert(at[me].attached[who] && at[me].has[who] == recorded[who]);
        at[me].served[who] = true
    :: what == REQUEST ->
        assert(at[me].served[who]);
        at[me].has[who]++;
        assert(at[me].has[who] <= 2);
        socket[me].from!REQUEST(who)
    :: what == DETACH ->
        at[me].attached[who] = false;
        at[me].served[who] = false;
        at[me].has[who] = 0
    fi
}

proctype worker(byte me)
{
    mtype what; byte who, count;
    do
    :: atomic { socket[me].to?what(who, count) -> WRITES(me); take(me, what, who, count) }
    :: atomic { !child[me] && deaths < DEATHS -> child[me] = true }
    :: atomic { deaths < DEATHS -> deaths++; WRITES(me) } -> break
    od;
    /* A process that ends closes its descriptors, and is there still. */
    atomic { WRITES(me); pipe[me] = false };
    atomic { WRITES(me); process[me] = false };
    if
    :: atomic { child[me] -> WRITES(me); child[me] = false }
    :: else
    fi
}

inline begin_restoring(c)
{
    if
#ifdef NO_ANEW
    :: step[c] == 1 -> socket[latest].to!OBJECTS(c, recorded[c])
#endif
#ifndef NO_LEAVE
    :: !gone[c] && step[c] == 0 ->
#else
    :: step[c] == 0 ->
#endif
        step[c] = 1;
        socket[latest].to!ATTACH(c, 0)
    :: else
    fi
}

inline resume_client(c)
{
    socket[latest].to!RESUME(c, 0);
    held[c] = false;
#ifndef NO_HOLD
    if
    :: taken[c] && !answered[c] -> socket[latest].to!REQUEST(c, 0)
    :: else
    fi
#endif
}

inline hear(what, c)
{
    if
    :: what == ATTACH && !gone[c] ->
        step[c] = 2;
#ifndef NO_STEPS
        socket[latest].to!OBJECTS(c, recorded[c])
#else
        resume_client(c);
        socket[latest].to!OBJECTS(c, recorded[c])
#endif
    :: what == OBJECTS && !gone[c] ->
        step[c] = 3;
#ifndef NO_STEPS
        resume_client(c)
#endif
    :: what == REQUEST && !gone[c] ->
#ifndef NO_RECORD
        recorded[c]++;
#endif
        answered[c] = true
    :: else
    fi
}

inline hold(c)
{
    held[c] = true;
#ifndef NO_ANEW
    step[c] = 0
#else
    step[c] = (step[c] == 3 -> 0 : step[c])
#endif
}

inline start_worker()
{
    process[latest] = true;
    pipe[latest] = true;
    c = 0;
    do
    :: c < CLIENTS -> begin_restoring(c); c++
    :: else -> break
    od;
    c = 0;
    run worker(latest)
}

inline serve(c)
{
    /* A request is taken once; while the client is held it waits. */
    if
    :: asked[c] && !taken[c] && !gone[c] ->
        taken[c] = true;
        if
        :: !held[c] -> socket[latest].to!REQUEST(c, 0)
        :: else
        fi
    :: left[c] && !gone[c] ->
        gone[c] = true;
        if
        :: !lost && step[c] -> socket[latest].to!DETACH(c, 0)
        :: else
        fi
    fi
}

#ifdef NO_PIPE
#define ALONE true
#else
#define ALONE (!pipe[latest] && !child[latest])
#endif
#ifdef NO_REAP
#define REAPED !pipe[latest]
#else
#define REAPED !process[latest]
#endif

active proctype supervisor()
{
    byte c; mtype what; bool lost;
    atomic {
        do
        :: c < CLIENTS -> held[c] = true; recorded[c] = 1; c++
        :: else -> break
        od;
        start_worker()
    };
    do
    :: atomic {
        !lost && nempty(socket[latest].from) ->
        socket[latest].from?what(c);
        hear(what, c);
        c = 0
    }
    /* The socket closes with the process's other descriptors. */
    :: atomic {
        !lost && !pipe[latest] ->
        lost = true;
        do
        :: c < CLIENTS -> hold(c); c++
        :: else -> break
        od;
        c = 0
    }
    :: atomic { lost && REAPED && ALONE -> lost = false; latest++; start_worker() }
    :: atomic { (asked[0] && !taken[0] || left[0]) && !gone[0] -> serve(0) }
#if CLIENTS > 1
    :: atomic { (asked[1] && !taken[1] || left[1]) && !gone[1] -> serve(1) }
#endif
    od
}

active [CLIENTS] proctype client()
{
    byte me = _pid - 1;
    asked[me] = true;
    if
    :: left[me] = true
    :: true
    fi
}

active proctype watch()
{
    byte c;
    timeout;
    do
    :: c < CLIENTS ->
        if
        :: left[c] -> assert(!at[latest].attached[c])
        :: else ->
            assert(answered[c] && !held[c] && at[latest].served[c]);
            assert(at[latest].has[c] == 2)
        fi;
        c++
    :: else -> break
    od
}
