/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A service manager; supervisors, each of which takes over what the one before left; a worker, and
 * others that follow it; and CLIENTS clients. A supervisor, a worker and a client may die between
 * any two of their steps. The manager keeps descriptors by their numbers. It reads what a supervisor
 * told it in order, maybe when that is dead already, but all of it before it starts the next one.
 *
 * A client's first request attaches it; each later one has the worker map a region, as the loading
 * of a module and the allocation of memory do. The worker takes its time for that: it goes on with
 * other messages meanwhile.
 *
 * Mirrors server/supervisor/survive.c:survive_commit,
 * server/supervisor/survive.c:survive_take_over,
 * server/supervisor/keep/keeper.c:keeper_store,
 * server/supervisor/keep/keeper.c:keeper_is_stored,
 * server/supervisor/keep/keeper.c:keeper_commit,
 * server/supervisor/keep/keeper.c:keeper_drop_unnamed,
 * server/supervisor/keep/keeper.c:find_log,
 * server/supervisor/session/session.c:receive_some,
 * server/supervisor/session/session.c:message_dispatch,
 * server/supervisor/session/life/record.c:session_record_resume,
 * server/supervisor/session/life/record.c:session_record_consume,
 * server/supervisor/session/life/restore.c:steps_advance,
 * server/supervisor/loop/send_queue.c:send_hold_release,
 * server/supervisor/worker/worker_link.c:message_take,
 * server/worker/control/control_attach.c:control_attach,
 * server/worker/control/control_attach.c:control_attach_finish,
 * server/worker/control/control.c:is_orphan and
 * client/session/session.c:deliver_reply.
 *
 * Proved: a client's connection ends only if the client did, or before its first answer, when it
 * connects anew; each request is answered; a region is mapped by one request, once, and what the
 * last worker has mapped in the end is what was answered; no worker is told of a client while
 * another one that lives has it; what is stored in the end is the log, the worker's socket and those
 * of the clients that are there; and a worker whose socket nobody has, or that nobody asks any more,
 * has ended.
 *
 * Options: CLIENTS; REQUESTS of each; DEATHS of supervisors; ENDS of workers; LEAVING: clients may
 * die; GIVES_UP: the manager starts no supervisor after the last death.
 *
 * Each of these removes one thing and must fail:
 *   NO_STORE    a record is committed before its descriptors are stored
 *   NO_COMMIT   a descriptor is dropped before the commit of the record that names it no more
 *   NO_DROP     what no record names stays with the manager
 *   NO_DRAIN    the manager starts a supervisor before it has read all of the one before
 *   NO_PEEK     a message leaves its socket before its request is kept
 *   NO_SEEN     a message that comes again is not known by its serial
 *   NO_FIRST    it is looked for behind the check of the connection's state
 *   NO_HOLD     answers and requests to the worker are sent before they are kept
 *   NO_AGAIN    an answer that is kept is not sent again
 *   NO_FENCE    the worker answers a new supervisor while it works for the last one
 *   NO_UNDO     memory that was being mapped is forgotten instead of unmapped
 *   NO_WHOLE    a client that a worker was being told of is taken for one that it was told of
 *   NO_BASE     serials of a supervisor begin where those of the last one did
 *   NO_ORPHAN   a worker waits for a supervisor for ever
 */
#ifndef CLIENTS
#define CLIENTS 1
#endif
#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef ENDS
#define ENDS 0
#endif
#ifdef GIVES_UP
#define SUPERVISORS DEATHS
#else
#define SUPERVISORS (DEATHS + 1)
#endif
#define WORKERS (ENDS + DEATHS + 1)
#define REGIONS (REQUESTS - 1 + DEATHS)
#define DIALS   (DEATHS + 1)

/* The things that a number may stand for. */
#define CONNECTION(c) ((c) * DIALS + dials[c]) /* the client's latest */
#define OF_CLIENT(x)  (((x) - 1) / DIALS)
#define LOG(g)        (CLIENTS * DIALS + 1 + (g))
#define LINK(w)       (LOG(DEATHS) + 1 + (w))
#define FILE(c)       (LINK(WORKERS) + 1 + (c)) /* that the client sends along with its second request */
#define THINGS        (FILE(CLIENTS))
#define NUMBERS       (2 * CLIENTS + 6)

#define SERIALS 16 /* more than a supervisor needs */

mtype = { STORE, DROP, ATTACH, MAP, UNMAP, DETACH };

/* ---- the manager ---- */

byte store[NUMBERS + 1];    /* by number */
byte refs[THINGS + 1];      /* of each thing: in the store, and on its way there */
chan notes = [8] of { mtype, byte, byte };
bool lives;                 /* a supervisor does */
byte starts, deaths, ends;

/* ---- the clients ---- */

chan in[CLIENTS] = [1] of { byte };
chan out[CLIENTS] = [DEATHS + 2] of { byte };
byte dials[CLIENTS], known[CLIENTS]; /* known: the latest serial that was answered */
bool backlog[CLIENTS], left[CLIENTS], told[CLIENTS];

/* ---- workers ---- */

typedef socket_to { chan q = [6] of { mtype, byte, byte, byte } };   /* what, client, serial, region */
typedef socket_from { chan q = [6] of { mtype, byte, byte, byte } };
socket_to to[WORKERS];
socket_from from[WORKERS];
typedef having { bool has[CLIENTS]; byte job[CLIENTS], job_serial[CLIENTS], again[CLIENTS]; bool region[CLIENTS * REGIONS] }
having at[WORKERS];
bool worker_lives[WORKERS];
byte workers;

/* ---- what a supervisor has, and has committed ---- */

/* Of a client. FREE, then what the schema names. */
#define FREE      0
#define GREETED   1
#define ATTACHING 2
#define ATTACHED  3
#define LEAVES    4

/* Of a region. */
#define UNUSED 0
#define NOT_LIVE 1 /* it is being mapped or unmapped */
#define LIVE   2

typedef record {
    byte link; /* number */
    byte number[CLIENTS], file[CLIENTS], state[CLIENTS], last[CLIENTS], inbox[CLIENTS], answer[CLIENTS];
    bool at_worker[CLIENTS], partly[CLIENTS]; /* partly: the worker has some of it, or nothing */
    byte region[CLIENTS * REGIONS]
}
record now, kept[SUPERVISORS];
bool begun[SUPERVISORS];

byte owner[CLIENTS];  /* connection that the session has; 0: none */
byte used[NUMBERS + 1]; /* by number: the thing that stands there, as the supervisor knows */
byte log_number, serial, worker_at;
bool has_link, took_over;
bool held[CLIENTS], peeked[CLIENTS], sends[CLIENTS];
byte seen[CLIENTS], mapping[CLIENTS], waits[CLIENTS], unmaps[CLIENTS * REGIONS];
chan hold = [6] of { mtype, byte, byte, byte };

/* A socket hangs up when nobody has its other end. */
#define CLIENT_LOST(c) (dials[c] && !backlog[c] && owner[c] != CONNECTION(c) && refs[CONNECTION(c)] == 0)
#define LINK_LOST(w)   (refs[LINK(w)] == 0 && !(has_link && worker_at == (w)))
#define WORKER_GONE    (has_link && !worker_lives[worker_at] && empty(from[worker_at].q))

#define REGION(c, r) ((c) * REGIONS + (r))

inline copy_record(t, f)
{
    t.link = f.link;
    i = 0;
    do
    :: i < CLIENTS ->
        t.number[i] = f.number[i]; t.file[i] = f.file[i]; t.state[i] = f.state[i]; t.last[i] = f.last[i];
        t.inbox[i] = f.inbox[i]; t.answer[i] = f.answer[i]; t.at_worker[i] = f.at_worker[i];
        t.partly[i] = f.partly[i];
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CLIENTS * REGIONS -> t.region[i] = f.region[i]; i++
    :: else -> break
    od;
    i = 0
}

inline zero_record(t)
{
    t.link = 0;
    i = 0;
    do
    :: i < CLIENTS ->
        t.number[i] = 0; t.file[i] = 0; t.state[i] = 0; t.last[i] = 0; t.inbox[i] = 0; t.answer[i] = 0;
        t.at_worker[i] = false; t.partly[i] = false;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CLIENTS * REGIONS -> t.region[i] = 0; i++
    :: else -> break
    od;
    i = 0
}

active proctype manager()
{
    mtype what; byte number, thing, has;
    do
    :: atomic {
        notes?what(number, thing) ->
        if
        :: what == STORE ->
            assert(!store[number]);
            has = 1;
            do
            :: has <= NUMBERS && store[has] != thing -> has++
            :: else -> break
            od;
            /* A descriptor that it has is not taken under another name. */
            if
            :: has <= NUMBERS -> refs[thing]--
            :: else -> store[number] = thing
            fi;
            has = 0
        :: what == DROP ->
            refs[store[number]] = refs[store[number]] - (store[number] -> 1 : 0);
            store[number] = 0
        fi;
        number = 0; thing = 0; what = 0
    }
#ifndef NO_DRAIN
    :: atomic { !lives && empty(notes) && starts < SUPERVISORS -> starts++; lives = true; run supervisor(starts - 1) }
#else
    :: atomic { !lives && starts < SUPERVISORS -> starts++; lives = true; run supervisor(starts - 1) }
#endif
    od
}

/* ---- the worker ---- */

inline worker_take(me)
{
    if
    :: what == ATTACH && !at[me].has[c] ->
        other = 0;
        do
        :: other < WORKERS -> assert(!(worker_lives[other] && at[other].has[c])); other++
        :: else -> break
        od;
        other = 0;
        at[me].has[c] = true;
        from[me].q!ATTACH(c, serial_, 0)
    :: what == ATTACH && at[me].has[c] ->
#ifndef NO_FENCE
        if
        :: at[me].job[c] -> at[me].again[c] = serial_
        :: else -> from[me].q!ATTACH(c, serial_, 0)
        fi
#else
        from[me].q!ATTACH(c, serial_, 0)
#endif
    :: what == MAP && r >= 128 -> /* another worker had it mapped */
        at[me].region[REGION(c, r - 128)] = true
    :: what == MAP && r < 128 ->
        assert(at[me].has[c]);
        assert(!at[me].job[c]);
        at[me].job[c] = r + 1;
        at[me].job_serial[c] = serial_
    :: what == UNMAP ->
        at[me].region[REGION(c, r)] = false;
        from[me].q!UNMAP(c, serial_, r)
    :: what == DETACH ->
        at[me].has[c] = false;
        at[me].again[c] = 0;
        at[me].job[c] = 0;
        at[me].job_serial[c] = 0;
        other = 0;
        do
        :: other < REGIONS -> at[me].region[REGION(c, other)] = false; other++
        :: else -> break
        od;
        other = 0;
        from[me].q!DETACH(c, serial_, 0)
    fi;
    what = 0; c = 0; serial_ = 0; r = 0
}

inline job_done(me, who)
{
    assert(!at[me].region[REGION(who, at[me].job[who] - 1)]);
    at[me].region[REGION(who, at[me].job[who] - 1)] = true;
    from[me].q!MAP(who, at[me].job_serial[who], at[me].job[who] - 1);
    at[me].job[who] = 0;
    at[me].job_serial[who] = 0;
    if
    :: at[me].again[who] -> from[me].q!ATTACH(who, at[me].again[who], 0); at[me].again[who] = 0
    :: else
    fi
}

proctype worker(byte me)
{
    mtype what; byte c, serial_, r, other;
    do
    :: atomic { to[me].q?what(c, serial_, r) -> worker_take(me) }
    :: atomic { at[me].job[0] -> job_done(me, 0) }
#if CLIENTS > 1
    :: atomic { at[me].job[1] -> job_done(me, 1) }
#endif
    :: atomic { LINK_LOST(me) && empty(to[me].q) -> break }
    :: atomic { ends < ENDS -> ends++; break }
#if defined(GIVES_UP) && !defined(NO_ORPHAN)
    :: atomic { !lives && starts == SUPERVISORS -> break }
#endif
    od;
    worker_lives[me] = false;
    d_step {
        do
        :: nempty(to[me].q) -> to[me].q?what(c, serial_, r)
        :: empty(to[me].q) -> break
        od;
        other = 0;
        do
        :: other < CLIENTS ->
            at[me].has[other] = false; at[me].job[other] = 0; at[me].job_serial[other] = 0; at[me].again[other] = 0;
            other++
        :: else -> break
        od;
        other = 0;
        do
        :: other < CLIENTS * REGIONS -> at[me].region[other] = false; other++
        :: else -> break
        od
    }
}

/* ---- the client ---- */

active [CLIENTS] proctype client()
{
    byte me = _pid - 1, asked, got;
again:
    atomic { dials[me]++; backlog[me] = true; asked = 1; in[me]!1 };
    do
    :: atomic {
        out[me]?got ->
        assert(got <= asked);
        if
        :: got == known[me] + 1 ->
            known[me] = got;
            if
            :: got < REQUESTS -> asked = got + 1; in[me]!asked
            :: else
            fi
        :: else -> assert(got <= known[me])
        fi;
        got = 0
    }
    :: atomic {
        CLIENT_LOST(me) && empty(out[me]) && known[me] == 0 ->
        do
        :: nempty(in[me]) -> in[me]?got
        :: empty(in[me]) -> break
        od;
        got = 0
    } -> goto again
    :: atomic { CLIENT_LOST(me) && empty(out[me]) && known[me] > 0 -> 
#ifdef GIVES_UP
        assert(!lives && starts == SUPERVISORS);
#else
        assert(false);
#endif
        break }
#ifdef LEAVING
    :: atomic { left[me] = true; break }
#endif
    od
}

/* ---- the supervisor ---- */

#define MAY_DIE                                                                                    \
    if                                                                                             \
    :: deaths < DEATHS -> goto died                                                                \
    :: true                                                                                        \
    fi

inline free_number()
{
    n = 1;
    do
    :: used[n] -> n++
    :: else -> break
    od;
    assert(n <= NUMBERS)
}

inline ask(opcode, who, region)
{
    serial++;
#ifndef NO_HOLD
    hold!opcode(who, serial, region)
#else
    to[worker_at].q!opcode(who, serial, region)
#endif
}

/* The region that has to be mapped for a request, if the worker may be asked now. */
inline want_begin(c)
{
    if
    :: !held[c] && mapping[c] -> ask(MAP, c, mapping[c] - 1); waits[c] = serial
    :: else
    fi
}

inline request_begin(c)
{
    if
    :: now.last[c] == 1 ->
        now.state[c] = ATTACHING;
        now.at_worker[c] = true;
        ask(ATTACH, c, 0);
        waits[c] = serial
    :: else ->
        i = 0;
        do
        :: now.region[REGION(c, i)] -> i++
        :: else -> break
        od;
        now.region[REGION(c, i)] = NOT_LIVE;
        mapping[c] = i + 1;
        i = 0;
        want_begin(c)
    fi
}

#define ALLOWED(c, s) (((s) == 1) == (now.state[c] == GREETED))

inline dispatch(c)
{
#ifdef NO_FIRST
    if
    :: ALLOWED(c, k) || k <= now.last[c] && now.state[c] == ATTACHED && k > 1
    :: else -> assert(false)
    fi;
#endif
    if
#ifndef NO_SEEN
    :: k == seen[c] -> seen[c] = 0
    :: k != seen[c] ->
#else
    :: true ->
#endif
        assert(ALLOWED(c, k));
        assert(k > now.last[c]);
        now.last[c] = k;
        now.inbox[c] = k;
        if
        :: k == 2 -> free_number(); now.file[c] = n; used[n] = FILE(c); refs[FILE(c)]++; notes!STORE(n, FILE(c)); n = 0
        :: else
        fi;
        request_begin(c)
    fi
}

inline reply(c)
{
    now.answer[c] = now.inbox[c];
    now.inbox[c] = 0;
    now.file[c] = 0;
    sends[c] = true
}

/* The client is gone for this supervisor. */
inline forget(c)
{
    now.state[c] = FREE;
    now.number[c] = 0;
    now.file[c] = 0;
    now.last[c] = 0;
    now.inbox[c] = 0;
    now.answer[c] = 0;
    now.at_worker[c] = false;
    now.partly[c] = false;
    owner[c] = 0;
    held[c] = false;
    peeked[c] = false;
    sends[c] = false;
    seen[c] = 0;
    mapping[c] = 0;
    waits[c] = 0;
    i = 0;
    do
    :: i < REGIONS -> now.region[REGION(c, i)] = UNUSED; unmaps[REGION(c, i)] = 0; i++
    :: else -> break
    od;
    i = 0
}

inline resume(c)
{
    held[c] = false;
    now.partly[c] = false;
    i = 0;
    do
    :: i < REGIONS ->
        if
        :: now.region[REGION(c, i)] == NOT_LIVE && mapping[c] != i + 1 ->
            ask(UNMAP, c, i);
            unmaps[REGION(c, i)] = serial
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    want_begin(c)
}

/* One that another worker had: it is told all, in one message for each region. */
inline tell_all(c)
{
    now.partly[c] = true;
    ask(ATTACH, c, 0);
    waits[c] = serial;
    i = 0;
    do
    :: i < REGIONS ->
        if
        :: now.region[REGION(c, i)] == LIVE -> ask(MAP, c, i + 128)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline hear()
{
    if
    :: what == ATTACH && s == waits[c] && now.state[c] == ATTACHING ->
        waits[c] = 0;
        now.state[c] = ATTACHED;
        reply(c)
    :: what == ATTACH && s == waits[c] && held[c] -> waits[c] = 0; resume(c)
    :: what == MAP && s == waits[c] && mapping[c] ->
        waits[c] = 0;
        now.region[REGION(c, r)] = LIVE;
        mapping[c] = 0;
        reply(c)
    :: what == UNMAP && s == unmaps[REGION(c, r)] ->
        unmaps[REGION(c, r)] = 0;
        now.region[REGION(c, r)] = UNUSED
    :: what == DETACH && s == waits[c] && now.state[c] == LEAVES -> forget(c)
    /* Of a request that was cancelled when its client left. */
    :: else -> assert(now.state[c] == LEAVES || now.state[c] == FREE)
    fi;
    what = 0; s = 0; r = 0; c = 0
}

inline hang_up(c)
{
    owner[c] = 0;
    mapping[c] = 0;
    now.inbox[c] = 0;
    now.file[c] = 0;
    now.answer[c] = 0;
    sends[c] = false;
    peeked[c] = false;
    now.state[c] = LEAVES;
    if
    :: now.at_worker[c] && has_link -> ask(DETACH, c, 0); waits[c] = serial
    :: else -> forget(c)
    fi
}

inline worker_start()
{
    worker_at = workers;
    workers++;
    has_link = true;
    now.link = 0;
    worker_lives[worker_at] = true;
    run worker(worker_at)
}

/* The barrier is the handover's. */
inline worker_replace()
{
    has_link = false;
    do
    :: nempty(hold) -> hold?what(c, s, r)
    :: empty(hold) -> break
    od;
    what = 0; s = 0; r = 0;
    worker_start();
    c = 0;
    do
    :: c < CLIENTS ->
        i = 0;
        do
        :: i < REGIONS -> unmaps[REGION(c, i)] = 0; i++
        :: else -> break
        od;
        i = 0;
        if
        :: now.state[c] == ATTACHED -> held[c] = true; waits[c] = 0; tell_all(c)
        /* It is told in words, and may try again; here it goes on waiting. */
        :: now.state[c] == ATTACHING -> ask(ATTACH, c, 0); waits[c] = serial
        :: now.state[c] == LEAVES -> forget(c)
        :: else
        fi;
        c++
    :: else -> break
    od;
    c = 0
}

inline take_over()
{
    n = 0;
    g = 0;
    latest = SUPERVISORS;
    n = 1;
    do
    :: n <= NUMBERS ->
        used[n] = store[n];
        n++
    :: else -> break
    od;
    do
    :: g < SUPERVISORS ->
        n = 1;
        do
        :: n <= NUMBERS && used[n] == LOG(g) && begun[g] -> latest = g; break
        :: n <= NUMBERS && !(used[n] == LOG(g) && begun[g]) -> n++
        :: n > NUMBERS -> break
        od;
        g++
    :: else -> break
    od;
    g = 0; n = 0;
    if
    :: latest < SUPERVISORS -> copy_record(now, kept[latest]); took_over = true
    :: else
    fi
}

inline look_named(x)
{
    is_named = x == now.link || x == log_number;
    i = 0;
    do
    :: i < CLIENTS -> is_named = is_named || (now.state[i] && (now.number[i] == x || now.file[i] == x)); i++
    :: else -> break
    od;
    i = 0
}

/* All records are read. */
inline take_up()
{
    if
    :: now.link && used[now.link] ->
        worker_at = used[now.link] - LINK(0);
        has_link = true;
    :: else
    fi;
    c = 0;
    do
    :: c < CLIENTS && now.state[c] ->
        assert(now.state[c] == LEAVES || used[now.number[c]]);
        assert(now.inbox[c] != 2 || used[now.file[c]] == FILE(c));
        seen[c] = now.last[c];
        i = 0;
        do
        :: i < REGIONS ->
#ifdef NO_UNDO
            now.region[REGION(c, i)] = (now.region[REGION(c, i)] == NOT_LIVE -> UNUSED : now.region[REGION(c, i)]);
#endif
            i++
        :: else -> break
        od;
        i = 0;
        if
        :: now.state[c] == LEAVES ->
            if
            :: has_link && now.at_worker[c] -> ask(DETACH, c, 0); waits[c] = serial
            :: else -> forget(c)
            fi
        :: now.state[c] == ATTACHING -> owner[c] = used[now.number[c]]; ask(ATTACH, c, 0); waits[c] = serial
        :: now.state[c] == ATTACHED ->
            owner[c] = used[now.number[c]];
            held[c] = true;
            if
            :: now.inbox[c] -> request_begin(c)
            :: else
            fi;
            /* The worker is told all of the client again, the part that it knows too. */
            if
#ifndef NO_WHOLE
            :: now.partly[c] ->
                if
                :: has_link -> tell_all(c)
                :: else
                fi
            :: else ->
#else
            :: true ->
#endif
                ask(ATTACH, c, 0);
                waits[c] = serial
            fi
        :: now.state[c] == GREETED -> owner[c] = used[now.number[c]]
        fi;
#ifndef NO_AGAIN
        sends[c] = now.answer[c] != 0;
#endif
        c++
    :: c < CLIENTS && !now.state[c] -> c++
    :: else -> break
    od;
    c = 0;
    if
    :: !has_link -> worker_replace()
    :: else
    fi
}

#define READS(x) (owner[x] && !peeked[x] && now.state[x] != ATTACHING && now.state[x] != LEAVES && \
                  !mapping[x] && !sends[x])

inline turn(x)
{
    if
    :: atomic { backlog[x] && !now.state[x] && !owner[x] ->
        backlog[x] = false;
        owner[x] = CONNECTION(x);
        now.state[x] = GREETED }
    :: atomic { READS(x) && nempty(in[x]) && !left[x] ->
#ifndef NO_PEEK
        in[x]?<k>;
        peeked[x] = true;
#else
        in[x]?k;
#endif
        dispatch(x);
        k = 0 }
    :: atomic { left[x] && owner[x] -> hang_up(x) }
    fi
}

proctype supervisor(byte me)
{
    mtype what; byte c, s, r, n, i, k, g, latest; bool is_named;
    skip;
    d_step {
        take_over();
#ifndef NO_BASE
        serial = me * SERIALS;
#else
        serial = 0;
#endif
        free_number();
        log_number = n;
        used[n] = LOG(me);
        refs[LOG(me)]++;
        n = 0
    };
    notes!STORE(log_number, LOG(me));
    MAY_DIE;
    atomic { take_up() };
    goto commit;
loop:
    if
    :: turn(0)
#if CLIENTS > 1
    :: turn(1)
#endif
    :: atomic { has_link && nempty(from[worker_at].q) ->
        from[worker_at].q?what(c, s, r);
        if
        :: s > serial - serial % SERIALS || s == serial -> hear()
        /* It was another supervisor's. */
        :: else -> what = 0; c = 0; s = 0; r = 0
        fi }
    :: atomic { WORKER_GONE -> worker_replace() }
    :: deaths < DEATHS -> goto died
    fi;
    MAY_DIE;
commit:
#ifdef NO_STORE
    skip;
    d_step { copy_record(kept[me], now); begun[me] = true };
#endif
    /* A number for each descriptor that has none. */
    if
    :: now.link || !has_link
    :: atomic { !now.link && has_link ->
        free_number(); now.link = n; used[n] = LINK(worker_at); refs[LINK(worker_at)]++;
        notes!STORE(n, LINK(worker_at)); n = 0 };
        MAY_DIE
    fi;
    c = 0;
    do
    :: c < CLIENTS ->
        if
        :: !owner[c] || now.number[c]
        :: atomic { owner[c] && !now.number[c] ->
            free_number(); now.number[c] = n; used[n] = owner[c]; refs[owner[c]]++;
            notes!STORE(n, owner[c]); n = 0 };
            MAY_DIE
        fi;
        c++
    :: else -> break
    od;
    c = 0;
#ifndef NO_COMMIT
    d_step { copy_record(kept[me], now); begun[me] = true };
    MAY_DIE;
#endif
    /* Descriptors that this supervisor stored, and those that it took over and no record names, look alike here. */
#ifndef NO_DROP
    n = 1;
    do
    :: n <= NUMBERS ->
        atomic {
            look_named(n);
            if
            :: used[n] && !is_named -> used[n] = 0; notes!DROP(n, 0)
            :: else
            fi;
            is_named = false
        };
        MAY_DIE;
        n++
    :: else -> break
    od;
    n = 0;
#endif
#ifdef NO_COMMIT
    MAY_DIE;
    d_step { copy_record(kept[me], now); begun[me] = true };
#endif
    c = 0;
    do
    :: c < CLIENTS ->
        atomic {
            if
            :: peeked[c] ->
                peeked[c] = false;
                if
                :: nempty(in[c]) -> in[c]?k; k = 0
                :: empty(in[c])
                fi
            :: else
            fi
        };
        MAY_DIE;
        c++
    :: else -> break
    od;
    c = 0;
    do
    :: atomic { nempty(hold) -> hold?what(c, s, r);
        if
        :: worker_lives[worker_at] -> to[worker_at].q!what(c, s, r)
        :: else
        fi;
        what = 0; c = 0; s = 0; r = 0 };
        MAY_DIE
    :: empty(hold) -> break
    od;
    do
    :: c < CLIENTS ->
        if
        :: !sends[c]
        :: atomic { sends[c] ->
            sends[c] = false;
            if
            :: !left[c] -> out[c]!now.answer[c]
            :: else
            fi;
            now.answer[c] = 0 };
            MAY_DIE
        fi;
        c++
    :: else -> break
    od;
    c = 0;
    took_over = false;
    goto loop;
died:
    deaths++;
    d_step {
        lives = false;
        has_link = false;
        worker_at = 0;
        serial = 0;
        log_number = 0;
        took_over = false;
        do
        :: nempty(hold) -> hold?what(c, s, r)
        :: empty(hold) -> break
        od;
        c = 0;
        do
        :: c < CLIENTS -> forget(c); c++
        :: else -> break
        od;
        n = 1;
        do
        :: n <= NUMBERS -> used[n] = 0; n++
        :: else -> break
        od;
        zero_record(now)
    }
}

active proctype watch()
{
    byte c, n, i, stored;
    timeout;
#ifdef GIVES_UP
    do
    :: n < WORKERS -> assert(!worker_lives[n]); n++
    :: else -> break
    od
#else
    do
    :: c < CLIENTS ->
        i = 0;
        stored = 0;
        do
        :: i < REGIONS -> stored = stored + at[worker_at].region[REGION(c, i)]; i++
        :: else -> break
        od;
        if
        :: left[c] -> assert(!refs[CONNECTION(c)] && !now.state[c] && !stored && !at[worker_at].has[c])
        :: else -> assert(known[c] == REQUESTS && stored == REQUESTS - 1 && now.state[c] == ATTACHED)
        fi;
        c++
    :: else -> break
    od;
    n = 1;
    stored = 0;
    c = 0;
    i = 2;
    do
    :: c < CLIENTS -> i = i + !left[c]; c++
    :: else -> break
    od;
    do
    :: n <= NUMBERS -> stored = stored + (store[n] != 0); n++
    :: else -> break
    od;
    assert(stored == i);
    n = 0;
    do
    :: n < WORKERS -> assert(!worker_lives[n] || n == worker_at); n++
    :: else -> break
    od
#endif
}
