/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A device's workers, one after the other; processes that a worker began and that keep the device's
 * descriptors; supervisors, one after the other; and CLIENTS clients. A worker and a supervisor may die
 * between any two of their steps, a worker's child lives on for a while, and a client may leave at
 * any moment. Each client makes one request.
 *
 * Mirrors server/supervisor/worker/worker_process.c:process_reap,
 * server/supervisor/worker/worker_process.c:barrier_ended,
 * server/supervisor/worker/worker_process.c:end_when_alone,
 * server/supervisor/session/life/restore.c:session_restore_hold,
 * server/supervisor/session/life/restore.c:session_restore_all,
 * server/supervisor/session/life/restore.c:session_restore_take_up,
 * server/supervisor/session/life/restore.c:steps_advance,
 * server/supervisor/session/life/restore.c:resume_client,
 * server/supervisor/survive.c:survive_commit,
 * server/supervisor/device/device.c:device_take_over,
 * server/worker/control/control_attach.c:control_attach and
 * server/worker/control/control_attach.c:control_attach_resume. How a supervisor's state outlives it
 * is in keep.pml; here it does.
 *
 * Proved: nothing of a dead worker writes when the next one has begun; no client is served by two
 * workers, or by one that has not all of it; a request has its effect once in the worker that the
 * client ends with; each client that stays is served with its request answered; a worker has nothing of
 * a client that left. A worker of which no later supervisor knows, since the one that began it died
 * at once, was told nothing, so it writes nothing.
 *
 * Options: CLIENTS; DEATHS of workers; ENDS of supervisors.
 *
 * Each of these removes one thing and must fail:
 *   NO_PIPE     the next worker begins when the process is reaped, whatever inherited the device
 *   NO_REAP     the next worker begins when the pipe has ended, and the process may be there still
 *   NO_HOLD     a request that a lost worker did not answer is not sent again
 *   NO_STEPS    a client is resumed without an answer about its objects
 *   NO_RECORD   what a request made is not recorded
 *   NO_ANEW     a client whose worker dies while it is told goes on in the middle
 *   NO_LEAVE    a client that left while there was no worker is told to the next one
 * and these where supervisors end:
 *   NO_STORE    the next supervisor knows neither process nor pipe of a worker that is lost
 *   NO_KEEP     a worker is told what is not kept yet
 *   NO_WHOLE    a client that a worker was being told of is taken for one that it was told of
 *   NO_RESUME   the next supervisor does not tell the worker again to serve a client
 *   NO_UNDO     what the worker made for a request that is not recorded stays
 */
#ifndef CLIENTS
#define CLIENTS 1
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef ENDS
#define ENDS 0
#endif
#define WORKERS (DEATHS + ENDS + 1)
#define QUEUE   (5 * CLIENTS)

mtype = { ATTACH, OBJECTS, RESUME, REQUEST, DETACH, UNDO };

/* A worker's socket is new, so what lies in the old one is gone. What, who, count, and the
 * supervisor that asked. */
typedef ends_of { chan to = [QUEUE] of { mtype, byte, byte, byte }; chan from = [QUEUE] of { mtype, byte, byte } }
ends_of socket[WORKERS];

typedef row { bool attached[CLIENTS]; bool served[CLIENTS]; byte has[CLIENTS] }
row at[WORKERS];
bool process[WORKERS], pipe[WORKERS], child[WORKERS], told[WORKERS], unknown[WORKERS];
byte begun, deaths, ends;

/* The clients. */
bool asked[CLIENTS], left[CLIENTS];

/* The record that the supervisor has, and the one that outlives it. whole: the worker was told all. */
typedef record {
    bool lost; byte latest; /* the worker that began last */
    bool taken[CLIENTS], answered[CLIENTS], gone[CLIENTS], away[CLIENTS], whole[CLIENTS];
    byte recorded[CLIENTS]
}
record now, kept;
bool held[CLIENTS];
byte step[CLIENTS], epoch;
chan hold = [QUEUE] of { mtype, byte, byte }; /* what is sent when it is kept */

/* Of a client: none; it is told the worker; its objects are; it is whole; the worker is asked when
 * it is done with what the last supervisor wanted; one that left is taken away from the worker. */
#define NONE    0
#define CLIENT  1
#define THINGS  2
#define WHOLE   3
#define FENCE   4
#define AWAY    5

/* Each step of a worker or its child may write to the device. */
#define WRITES(me) assert(now.latest == me || !told[me])

#if defined(NO_KEEP) || !ENDS
#define SEND(what, c, n) socket[now.latest].to!what(c, n, epoch)
#else
#define SEND(what, c, n) hold!what(c, n)
#endif

inline take(me, what, who, count, by)
{
    if
    :: what == ATTACH ->
        assert(!at[me].attached[who] || by > 0);
        at[me].attached[who] = true;
        socket[me].from!ATTACH(who, by)
    :: what == OBJECTS ->
        assert(at[me].attached[who] && !at[me].served[who]);
        /* Those that it made for the supervisor before, it has. */
        assert(!at[me].has[who] || by > 0 && at[me].has[who] == count);
        at[me].has[who] = count;
        socket[me].from!OBJECTS(who, by)
    :: what == UNDO ->
        assert(at[me].attached[who] && at[me].has[who] >= count);
        at[me].has[who] = count
    :: what == RESUME ->
        assert(at[me].attached[who] && at[me].has[who] == count);
        at[me].served[who] = true
    :: what == REQUEST ->
        assert(at[me].served[who]);
        at[me].has[who]++;
        assert(at[me].has[who] <= 2);
        socket[me].from!REQUEST(who, by)
    :: what == DETACH ->
        at[me].attached[who] = false;
        at[me].served[who] = false;
        at[me].has[who] = 0;
        socket[me].from!DETACH(who, by)
    fi
}

proctype worker(byte me)
{
    mtype what; byte who, count, by;
    do
    :: atomic {
        socket[me].to?what(who, count, by) ->
        told[me] = true;
        WRITES(me);
        take(me, what, who, count, by);
        what = 0; who = 0; count = 0; by = 0
    }
    :: atomic { !child[me] && deaths < DEATHS -> child[me] = true }
    :: atomic { deaths < DEATHS -> deaths++; WRITES(me) } -> break
    /* Nobody has its socket's other end. */
    :: atomic { unknown[me] -> WRITES(me) } -> break
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
    :: step[c] == CLIENT -> SEND(OBJECTS, c, now.recorded[c])
#endif
#ifndef NO_LEAVE
    :: !now.gone[c] && step[c] == NONE ->
#else
    :: step[c] == NONE ->
#endif
        step[c] = CLIENT;
        SEND(ATTACH, c, 0)
    :: else
    fi
}

/* Of one that the worker was told; again: of one that it was told whole by the last supervisor. */
inline resume_client(c, again)
{
#ifdef NO_RESUME
    if
    :: !again -> SEND(RESUME, c, now.recorded[c])
    :: else
    fi;
#else
    SEND(RESUME, c, now.recorded[c]);
#endif
    step[c] = WHOLE;
    now.whole[c] = true;
    held[c] = false;
#ifndef NO_HOLD
    if
    :: now.taken[c] && !now.answered[c] -> SEND(REQUEST, c, 0)
    :: else
    fi
#endif
}

inline hear(what, c)
{
    if
    :: what == ATTACH && !now.gone[c] && step[c] == CLIENT ->
        step[c] = THINGS;
#ifndef NO_STEPS
        SEND(OBJECTS, c, now.recorded[c])
#else
        resume_client(c, false);
        SEND(OBJECTS, c, now.recorded[c])
#endif
    :: what == ATTACH && !now.gone[c] && step[c] == FENCE ->
#ifndef NO_UNDO
        SEND(UNDO, c, now.recorded[c]);
#endif
        resume_client(c, true)
    :: what == OBJECTS && !now.gone[c] && step[c] == THINGS ->
        step[c] = WHOLE;
#ifndef NO_STEPS
        resume_client(c, false)
#endif
    :: what == REQUEST && !now.gone[c] ->
#ifndef NO_RECORD
        now.recorded[c]++;
#endif
        now.answered[c] = true
    :: what == DETACH && now.gone[c] -> now.away[c] = true
    :: else
    fi
}

inline hold_client(c)
{
    held[c] = true;
    now.whole[c] = false;
    now.away[c] = now.gone[c];
#ifndef NO_ANEW
    step[c] = NONE
#else
    step[c] = (step[c] == WHOLE -> NONE : step[c])
#endif
}

inline start_worker()
{
    now.latest = begun;
    begun++;
    process[now.latest] = true;
    pipe[now.latest] = true;
    c = 0;
    do
    :: c < CLIENTS -> begin_restoring(c); c++
    :: else -> break
    od;
    c = 0;
    run worker(now.latest)
}

inline serve(c)
{
    /* A request is taken once; while the client is held it waits. */
    if
    :: asked[c] && !now.taken[c] && !now.gone[c] ->
        now.taken[c] = true;
        if
        :: !held[c] -> SEND(REQUEST, c, 0)
        :: else
        fi
    :: left[c] && !now.gone[c] ->
        now.gone[c] = true;
        if
        :: !now.lost && step[c] -> SEND(DETACH, c, 0)
        :: else -> now.away[c] = true
        fi
    fi
}

inline copy_record(t, f)
{
    t.lost = f.lost; t.latest = f.latest;
    c = 0;
    do
    :: c < CLIENTS ->
        t.taken[c] = f.taken[c]; t.answered[c] = f.answered[c]; t.gone[c] = f.gone[c];
        t.away[c] = f.away[c]; t.whole[c] = f.whole[c]; t.recorded[c] = f.recorded[c];
        c++
    :: else -> break
    od;
    c = 0
}

/* The next supervisor: all it knows is what was kept. */
inline take_over()
{
    copy_record(now, kept);
    epoch++;
    c = now.latest + 1;
    do
    :: c < WORKERS -> unknown[c] = process[c]; c++
    :: else -> break
    od;
    c = 0;
    do
    :: c < CLIENTS ->
        held[c] = true;
        step[c] = NONE;
        if
        :: now.lost
        :: !now.lost && now.gone[c] && !now.away[c] -> step[c] = AWAY; SEND(DETACH, c, 0)
#ifndef NO_WHOLE
        :: !now.lost && !now.gone[c] && !now.whole[c] -> step[c] = CLIENT; SEND(ATTACH, c, 0)
        :: !now.lost && !now.gone[c] && now.whole[c] -> step[c] = FENCE; SEND(ATTACH, c, 0)
#else
        :: !now.lost && !now.gone[c] -> step[c] = FENCE; SEND(ATTACH, c, 0)
#endif
        :: else
        fi;
        c++
    :: else -> break
    od;
    c = 0
}

#ifdef NO_STORE
#define KNOWN (epoch == 0)
#else
#define KNOWN true
#endif
#ifdef NO_PIPE
#define ALONE true
#else
#define ALONE (!pipe[now.latest] && !child[now.latest] || !KNOWN)
#endif
#ifdef NO_REAP
#define REAPED !pipe[now.latest]
#else
#define REAPED (!process[now.latest] || !KNOWN)
#endif

#define MAY_DIE                                                                                    \
    if                                                                                             \
    :: ends < ENDS -> goto died                                                                    \
    :: true                                                                                        \
    fi

active proctype supervisor()
{
    byte c, n, by; mtype what;
    atomic {
        do
        :: c < CLIENTS -> held[c] = true; now.recorded[c] = 1; c++
        :: else -> break
        od;
        start_worker()
    };
#if ENDS
    goto commit;
#endif
loop:
    if
    :: atomic {
        !now.lost && nempty(socket[now.latest].from) ->
        socket[now.latest].from?what(c, by);
        if
        /* Serials of the last supervisor are smaller. */
        :: by == epoch -> hear(what, c)
        :: else
        fi;
        c = 0; by = 0; what = 0
    }
    /* The socket closes with the process's other descriptors. */
    :: atomic {
        !now.lost && !pipe[now.latest] ->
        now.lost = true;
        do
        :: c < CLIENTS -> hold_client(c); c++
        :: else -> break
        od;
        c = 0
    }
    :: atomic { now.lost && REAPED && ALONE -> now.lost = false; start_worker() }
    :: atomic { (asked[0] && !now.taken[0] || left[0]) && !now.gone[0] -> serve(0) }
#if CLIENTS > 1
    :: atomic { (asked[1] && !now.taken[1] || left[1]) && !now.gone[1] -> serve(1) }
#endif
#if ENDS
    :: ends < ENDS -> goto died
#endif
    fi;
#if ENDS
    MAY_DIE;
commit:
    skip;
    d_step { copy_record(kept, now) };
    MAY_DIE;
    do
    :: atomic { nempty(hold) -> hold?what(c, n); socket[now.latest].to!what(c, n, epoch); what = 0; c = 0; n = 0 };
        MAY_DIE
    :: empty(hold) -> break
    od;
#endif
    goto loop;
#if ENDS
died:
    ends++;
    atomic {
        do
        :: nempty(hold) -> hold?what(c, n)
        :: empty(hold) -> break
        od;
        what = 0; c = 0; n = 0;
        take_over()
    };
    goto commit
#endif
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
        :: left[c] -> assert(!at[now.latest].attached[c])
        :: else ->
            assert(now.answered[c] && !held[c] && at[now.latest].served[c]);
            assert(at[now.latest].has[c] == 2)
        fi;
        c++
    :: else -> break
    od
}
