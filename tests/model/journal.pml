/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * One stream, its client, the device, and workers that follow one another, each of which may die
 * between any two of its steps. The words outlive a worker: what the device has reached, what the
 * worker has begun, and the ends of what is lost, which stand once more where the client reads
 * them. A command may be lost without having been begun: it waits for work that is lost.
 *
 * Mirrors server/worker/run/submitter_visit.c:run_some,
 * server/worker/client/client_stream.c:client_stream_begin,
 * server/worker/client/client_stream.c:client_stream_interrupt,
 * server/worker/client/client_stream.c:find_losses,
 * server/worker/client/client_stream.c:show_lost,
 * server/worker/client/client_stream.c:client_stream_drop,
 * server/worker/client/client_stream.c:client_stream_recover,
 * server/worker/client/client_stream.c:client_stream_open,
 * server/supervisor/worker/worker_process.c:end_when_alone and
 * client/engine/stream.c:stream_wait_value.
 *
 * Proved: no command is carried out twice; a client that finds a command finished, by its value and
 * the ends of what is lost, has a command that was carried out; nothing of a dead worker is carried
 * out when the next one has begun; and no client waits for ever. A worker may die again while it
 * restores the stream. With DYING the client may end at any moment, while it recovers too.
 *
 * Options: PUSHES commands; CRASHES of workers; DYING.
 *
 * Each of these removes one thing and must fail:
 *   NO_NOTE     a command is noted when the device has it already
 *   NO_LOSS     the next worker goes on behind what was reached, and nothing is lost
 *   NO_MARK     the timeline passes a lost value before that is marked
 *   NO_BARRIER  the next worker begins while the last one's device still works
 *   NO_MIN      a second loss forgets that the first one's work was lost as well
 *   NO_DROP     the commands behind a loss stay in the ring
 *   NO_SHOW     the next worker does not show the client what the last one had noted
 */
#ifndef PUSHES
#define PUSHES 3
#endif
#ifndef CRASHES
#define CRASHES 2
#endif

byte tail;                                   /* the client's */
byte begun, reached, completed;              /* words; the device writes the last two */
byte lost_from, lost_to; bool interrupted;   /* words; interrupted: the end is not known yet */
byte shown_from, shown_to; bool shown;       /* the same words, as the client sees them */
byte executed[PUSHES + 1];
byte next, end;                              /* the device's queue: after next, up to end */
byte told_client, told_server;               /* what it has written of that */
byte ghost, ghost_end;                       /* the same of a dead worker's device */
byte crashes;
bool alive, wants_recovery, done;

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

#define MAY_DIE                                                                                    \
    if                                                                                             \
    :: crashes < CRASHES -> goto died                                                              \
    :: true                                                                                        \
    fi

/* The beginning first. `interrupted` and its end are one word. */
#define SHOW_LOSS                                                                                  \
    shown_from = lost_from;                                                                        \
    MAY_DIE;                                                                                       \
    atomic { shown = interrupted; shown_to = lost_to };                                            \
    MAY_DIE

active proctype device()
{
    do
    :: atomic {
        next < end ->
        next++;
        executed[next]++;
        assert(executed[next] == 1)
    }
    /* The client's word first. One write stands for a batch. */
    :: atomic { told_client < next -> told_client = next; completed = next }
    :: atomic { told_server < told_client -> told_server = told_client; reached = told_server }
    od
}

/* What is left of a dead worker: nothing, behind the barrier. */
active proctype dead_device()
{
    do
    :: atomic {
        ghost < ghost_end ->
        ghost++;
        executed[ghost]++;
        assert(!alive);
        assert(executed[ghost] == 1)
    }
    od
}

active proctype worker()
{
    byte value, seen;
begin:
#ifndef NO_BARRIER
    /* The old process is gone, and so is what it began. */
    atomic { ghost = ghost_end; alive = true }
#else
    alive = true;
#endif
    seen = MIN(MAX(reached, completed), begun);
#ifdef NO_LOSS
    begun = seen;
#endif
    value = begun;
    MAY_DIE;
#ifdef NO_MARK
    completed = value;
    MAY_DIE;
#endif
#ifndef NO_SHOW
    SHOW_LOSS;
#endif
    if
    :: seen < begun ->
#ifndef NO_MIN
        lost_from = (interrupted -> MIN(lost_from, seen) : seen);
#else
        lost_from = seen;
#endif
        MAY_DIE;
        interrupted = true;
        MAY_DIE;
        SHOW_LOSS
    :: else
    fi;
    begun = value;
    completed = value;
    MAY_DIE;
    reached = value;
    atomic { next = value; end = value; told_client = value; told_server = value }
    do
    :: !interrupted && tail > value ->
#ifndef NO_NOTE
        begun = value + 1;
        MAY_DIE;
        end = value + 1;
#else
        end = value + 1;
        MAY_DIE;
        begun = value + 1;
#endif
        MAY_DIE;
        value++
    /* The next command waits for work that is lost. */
    :: !interrupted && tail > value && reached == end ->
        lost_from = value;
        MAY_DIE;
        interrupted = true;
        MAY_DIE;
        SHOW_LOSS
#ifndef NO_DROP
    :: interrupted && reached == end && tail > value ->
        value = tail;
        begun = value;
        MAY_DIE;
        completed = value;
        MAY_DIE;
        reached = value;
        atomic { next = value; end = value; told_client = value; told_server = value }
#endif
    :: wants_recovery && (!interrupted || reached == tail) ->
        if
        :: interrupted ->
            atomic { lost_to = tail; interrupted = false };
            MAY_DIE;
            SHOW_LOSS
        :: else
        fi;
        wants_recovery = false
    :: crashes < CRASHES -> goto died
    od;
died:
    atomic {
        crashes++;
        alive = false;
        ghost = next;
        ghost_end = end;
        end = next;
        told_client = next;
        told_server = next
    };
    goto begin
}

active proctype client()
{
    byte value, to, from, known; bool goes_on;
    do
#ifdef DYING
    :: goto ended
#endif
    :: tail < PUSHES ->
        tail++;
        if
        :: true -> skip /* it issues more before it waits */
        :: true ->
            /* For any command that it has not heard of as lost. */
            value = known + 1;
            do
            :: value < tail -> value++
            :: break
            od;
            completed >= value;
            atomic { goes_on = shown; to = shown_to };
            from = shown_from;
            if
            :: value > from && (goes_on || value <= to) ->
                wants_recovery = true;
                if
                :: !wants_recovery
#ifdef DYING
                :: goto ended
#endif
                fi;
                known = tail
            :: else ->
                assert(executed[value] == 1)
            fi
        fi
    :: tail == PUSHES -> break
    od;
    if
    :: completed >= PUSHES
#ifdef DYING
    :: true
#endif
    fi;
#ifdef DYING
ended:
#endif
    done = true
}

active proctype watch()
{
    timeout;
    assert(done)
}
