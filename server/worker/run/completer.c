/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/completer.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/util.h"
#include "common/ipc/channel.h"
#include "common/ipc/timeline.h"
#include "server/scheduler/lateness.h"
#include "server/worker/calls/activity.h"
#include "server/worker/worker.h"

#define YIELD_NS       5000   /* ns of looks without a pause, which let other threads run */
#define PAUSE_FIRST_NS 20000  /* ns; a sleep costs about as much anyway */
#define PAUSE_MAX_NS   500000 /* ns; no sleeper is woken later than this */
#define PAUSE_MIN_NS   30000  /* ns; where the device idles until the end of work is seen */
#define TICKS_MAX      4      /* ticks without work before the completer goes to sleep */

/* The findings of one look at all clients. */
struct completer_look {
    bool urgent;        /* a thread, a request or a lease waits for the end of work */
    bool in_use;        /* work is in flight */
    bool progress;      /* the device has reached something since the last look */
    uint64_t max_pause; /* ns; if the end of work is seen later than this the device may idle */
};

static void wake_all(struct completer *completer)
{
    for (uint32_t i = 0; i < completer->wake_count; i++)
        timeline_wake(completer->wakes[i]);
    completer->wake_count = 0;
}

static void wake_later(struct completer *completer, const struct client_stream *stream)
{
    if (completer->wake_count == sizeof completer->wakes / sizeof *completer->wakes)
        wake_all(completer);
    completer->wakes[completer->wake_count++] = timeline_word(stream->ring.ring.status);
}

static void look_at_stream(struct completer *completer, struct client_stream *stream,
                           struct completer_look *look)
{
    struct client *client = stream->client;
    if (stream->first_end)
        batch_ends_look(&completer->worker->ends, stream);
    uint64_t reached = client_stream_reached(stream);
    bool done = reached >= client_stream_written(stream);
    if (reached != stream->woken) {
        look->progress = true;
        suspicion_reach(&client->shared.suspicion, stream->index, reached);
        uint64_t now = clock_now();
        work_length_reach(&client->shared.length, &stream->work, reached, now);
        atomic_store_explicit(&stream->moved_at, now, memory_order_relaxed);
        stream->work.order = atomic_fetch_add(&completer->worker->work_order, 1);
    }
    /* When all work is done, sleepers are woken even if they were woken for this value before: a
     * thread may have announced itself since. It looks at the value; if it waits for a later one,
     * the ring's next batch finds it. */
    if (stream->watched && (done || reached != stream->woken))
        wake_later(completer, stream);
    stream->woken = reached;
    if (!done)
        return;
    bits_clear(client->shared.busy, stream->index);
    client_stream_set_watched(stream, false);
}

static bool any_closed(const struct client *client)
{
    for (uint32_t i = 0; client->shared.closing_count && i < client->stream_count; i++)
        if (client_stream_has_ended(&client->streams[i]))
            return true;
    return false;
}

static bool any_linked_dependency_met(const struct client *client)
{
    const struct blocked_rings *blocked = &client->shared.blocked;
    for (uint32_t i = blocked_rings_next(blocked, 0, client->stream_count);
         blocked->linked && i < client->stream_count;
         i = blocked_rings_next(blocked, i + 1, client->stream_count))
        if (client_stream_may_go_on(&client->streams[i]))
            return true;
    return false;
}

/* Whether a full client has room again. */
static bool may_go_on(const struct client *client)
{
    return client_in_flight(client) <= client->gate.go_on_at ||
           (client->gate.go_on_drained && client_has_drained_ring(client));
}

/* Finds things that other threads have to go on with, now that the device has come far enough. */
static void look_at_waits(struct client *client, struct completer_look *look, bool *control,
                          bool *submitter)
{
    bool leaving = client_state_is_leaving(client_state(client));
    if (client_state_is_full(client_state(client)) && may_go_on(client)) {
        client_state_set(client,
                         client_state(client) == CLIENT_FULL ? CLIENT_READY : CLIENT_ASLEEP);
        client_signal_submitter(client);
        *submitter = true;
    }
    if (any_linked_dependency_met(client)) {
        client_signal_submitter(client);
        *submitter = true;
    }
    if (retire_any_ready(client) || any_closed(client) || (leaving && client_is_quiet(client)))
        *control = true;
    look->urgent |= client->shared.watched_count || client_state_is_full(client_state(client)) ||
                    client->shared.blocked.linked || !queue_is_empty(&client->shared.frees) ||
                    client->shared.closing_count || leaving;
}

/* Under the client's lock. Tried again at the next look if the socket is full. */
static void tell_proven(const struct worker *worker, struct client *client)
{
    struct channel_packet notice = {.opcode = PROTO_WORKER_PROVEN, .client = client->number};
    if (client->shared.suspicion.proven && channel_send(worker->channel, &notice) == 0)
        client->shared.suspicion.proven = false;
}

static void look_at_client(struct completer *completer, struct client *client,
                           struct completer_look *look, bool *control, bool *submitter)
{
    struct completer_look own = {0};
    activity_beat(); /* as the submitter does with each visit */
    client_lock(client);
    bool busy = false;
    for (uint32_t i = bits_next(client->shared.busy, 0, client->stream_count);
         i < client->stream_count;
         i = bits_next(client->shared.busy, i + 1, client->stream_count)) {
        look_at_stream(completer, &client->streams[i], &own);
        busy |= bits_test(client->shared.busy, i);
    }
    tell_proven(completer->worker, client);
    struct gate *gate = &completer->worker->gate;
    if (own.progress)
        gate_note_done(gate, client);
    own.max_pause = PAUSE_MAX_NS;
    if (client_state_is_full(client_state(client)) && client->gate.go_on_ns / 2 < own.max_pause)
        own.max_pause = client->gate.go_on_ns / 2;
    /* Nobody else would see the end. */
    own.urgent |= busy && batch_ends_polled(&completer->worker->ends);
    if (busy && gate_has_held(gate)) {
        own.max_pause = 0;
        own.urgent = true;
    }
    look_at_waits(client, &own, control, submitter);
    if (!busy && bits_next(client->shared.ready, 0, client->stream_count) == client->stream_count)
        placement_idle(&completer->worker->places, &client->place, clock_now());
    own.in_use = busy;
    /* Under the lock: the submitter holds it when it looks whether it has to signal again. */
    if (!busy && !own.urgent)
        atomic_store(&client->signals.completer, 0);
    pthread_mutex_unlock(&client->lock);
    look->urgent |= own.urgent;
    look->in_use |= own.in_use;
    look->progress |= own.progress;
    look->max_pause = min(look->max_pause, own.max_pause);
}

static struct completer_look completer_look(struct completer *completer)
{
    struct worker *worker = completer->worker;
    struct completer_look look = {.max_pause = PAUSE_MAX_NS};
    bool control = false, submitter = false;
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (atomic_load(&worker->clients[i]->signals.completer))
            look_at_client(completer, worker->clients[i], &look, &control, &submitter);
    /* Under the lock: the words belong to clients, which leave the table only under it. */
    wake_all(completer);
    pthread_mutex_unlock(&worker->clients_lock);
    if (control)
        wake_control(&worker->wake);
    if (submitter)
        wake_submitter(&worker->wake);
    if (look.progress)
        worker_reschedule(worker);
    return look;
}

static void tick_device(struct completer *completer, uint64_t now, bool in_use)
{
    struct worker *worker = completer->worker;
    if (now - completer->checked_at < LATENESS_NS)
        return;
    completer->checked_at = now;
    meter_collect(&worker->meter);
    gate_charge_usage(&worker->gate);
    pthread_mutex_lock(&worker->clients_lock);
    usage_ledger_tick(&worker->ledger, worker);
    pthread_mutex_unlock(&worker->clients_lock);
    placement_tick(&worker->places, now);
    worker_reschedule(worker);
    if (!in_use)
        return;
    overrun_look(&worker->overrun, worker, now);
    cuda_result result = stream_pool_query(&worker->pool);
    if (cuda_driver_error_is_sticky(result))
        worker_fail(worker, result, CONTEXT_LOSS_WORK);
}

/* Announces how the completer is going to rest, then looks once more. Work that arrives in between
 * is either seen by this look or rings the bell. */
static void rest_until_woken(struct completer *completer, enum wake_rest how, uint64_t nanoseconds)
{
    struct wake *wake = &completer->worker->wake;
    uint32_t seen = wake_completer_rests(wake, how);
    struct completer_look look = completer_look(completer);
    bool stay = look.urgent || (look.in_use && how == WAKE_ASLEEP) || atomic_load(&completer->stop);
    if (!stay) {
        activity_rest(true);
        wake_completer_pause(wake, seen, nanoseconds);
        activity_rest(false);
    }
    wake_completer_up(wake);
}

static void watch_timelines(struct completer *completer)
{
    uint64_t quiet_since = clock_now(); /* without progress */
    uint64_t pause = 0;
    uint32_t idle_ticks = 0;
    /* Relaxed: completer_stop rings the bell, and a rest begins with a look in full order. */
    while (!atomic_load_explicit(&completer->stop, memory_order_relaxed)) {
        activity_beat();
        struct completer_look look = completer_look(completer);
        uint64_t now = clock_now();
        if (look.in_use || look.urgent)
            idle_ticks = 0;
        tick_device(completer, now, look.in_use);
        if (look.progress) {
            quiet_since = now;
            pause = 0;
        }
        if (!look.urgent) {
            bool asleep = !look.in_use && ++idle_ticks > TICKS_MAX;
            rest_until_woken(completer, asleep ? WAKE_ASLEEP : WAKE_TICKING,
                             asleep ? 0 : LATENESS_NS);
            quiet_since = clock_now();
            pause = 0;
        } else if (now - quiet_since < YIELD_NS) {
            sched_yield();
        } else {
            /* By half: the end is seen late by at most half of the time that was waited for it. */
            pause = pause ? pause + pause / 2 : PAUSE_FIRST_NS;
            if (pause > look.max_pause)
                pause = max(look.max_pause, (uint64_t)PAUSE_MIN_NS);
            struct timespec time = {.tv_nsec = (long)pause};
            nanosleep(&time, NULL);
        }
    }
}

static void *completer_main(void *argument)
{
    struct completer *completer = argument;
    activity_begin(ACTIVITY_COMPLETER);
    /* The default timer slack of 50 us would more than double the first pauses. */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    cuda_result result = gpu_enter(&completer->worker->gpu);
    if (result != CUDA_OK)
        worker_fail(completer->worker, result, CONTEXT_LOSS_ENTERING);
    else
        watch_timelines(completer);
    return NULL;
}

uint32_t completer_start(struct completer *completer, struct worker *worker, struct error *why)
{
    *completer = (struct completer){.worker = worker};
    int error = thread_start(&completer->thread, "completer", completer_main, completer);
    if (error)
        return error_set(why, MESSAGE(completer_thread), strerror(error));
    return 0;
}

void completer_stop(struct completer *completer)
{
    if (!completer->thread.running)
        return;
    atomic_store(&completer->stop, 1);
    wake_completer_always(&completer->worker->wake);
    thread_join(&completer->thread);
}
