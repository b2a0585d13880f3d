/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A visit to one client: its doorbells, its rings, batch by batch. */
#include <sched.h>
#include <string.h>

#include "common/clock.h"
#include "common/cpu.h"
#include "common/messages.h"
#include "common/ipc/doorbell.h"
#include "common/ipc/shared_word.h"
#include "common/ipc/timeline.h"
#include "common/util.h"
#include "server/worker/calls/activity.h"
#include "server/worker/run/submitter.h"
#include "server/worker/worker.h"
#include "server/worker/sharing/client_partition.h"

#define LOOKS_A_DOORBELL 64 /* about a microsecond of an idle submitter's looks at one client */

#define LINGER_PAUSES 12 /* roughly the time in which a client pushes three launches */
/* A blocked ring is looked at no more often, since each look costs its producer a cache miss. */
#define WAIT_LOOK_NS 50000

/* ---- one ring ---- */

/* Under the client's lock. */
static void stop_reading(struct client *client)
{
    client_state_set(client, CLIENT_VIOLATED);
    memset(client->shared.ready, 0, sizeof client->shared.ready);
    blocked_rings_clear(&client->shared.blocked);
}

static int tail_lies(struct client_stream *stream)
{
    struct client *client = stream->client;
    error_set(&client->shared.violation, MESSAGE(ring_tail), client->number, stream->index);
    return COMMAND_VIOLATION;
}

static void block_ring(struct submitter *submitter, struct client_stream *stream)
{
    struct client *client = stream->client;
    bool linked = blocked_rings_add(&client->shared.blocked, stream);
    if (stream->blocked_on.local_bytes)
        wake_control(&submitter->worker->wake);
    if (!linked)
        return;
    client_signal_completer(client);
    wake_completer(&submitter->worker->wake, true);
}

static void unblock_rings(struct submitter *submitter, struct client *client)
{
    struct blocked_rings *blocked = &client->shared.blocked;
    uint32_t count = client->stream_count;
    for (uint32_t i = blocked_rings_next(blocked, 0, count); i < count;
         i = blocked_rings_next(blocked, i + 1, count)) {
        if (!client_stream_may_go_on(&client->streams[i]))
            continue;
        blocked_rings_remove(blocked, &client->streams[i]);
        /* Until now the ring waited for another ring, not for the submitter. */
        queue_latency_restart(&client->streams[i].latency, submitter->visits, submitter->now);
        bits_set(client->shared.ready, i);
    }
}

/* The commands of an interrupted stream never reach the driver. */
static int drop_ring(struct submitter *submitter, struct client_stream *stream)
{
    struct client *client = stream->client;
    if (client_stream_in_flight(stream)) {
        stream->blocked_on = (struct stream_dependencies){.own_end = true};
        block_ring(submitter, stream);
        return 0;
    }
    if (client_stream_drop(stream) < 0)
        return tail_lies(stream);
    if (client->shared.blocked.count)
        unblock_rings(submitter, client);
    return 0;
}

static void mark_busy(struct submitter *submitter, struct client_stream *stream)
{
    struct client *client = stream->client;
    uint64_t written = client_stream_written(stream);
    if (client_stream_reached(stream) >= written) {
        work_length_begin(&stream->work, written, submitter->now);
        stream->work.order = atomic_fetch_add(&submitter->worker->work_order, 1);
        stream->work.batch = stream->ring.value;
        atomic_store_explicit(&stream->moved_at, submitter->now, memory_order_relaxed);
    }
    bits_set(client->shared.busy, stream->index);
    /* Relaxed: the mark is cleared only under the client's lock, which this thread holds. */
    if (!atomic_load_explicit(&client->signals.completer, memory_order_relaxed)) {
        client_signal_completer(client);
        wake_completer(&submitter->worker->wake, gate_has_held(&submitter->worker->gate) ||
                                                     batch_ends_polled(&submitter->worker->ends));
    }
}

/* If a thread sleeps on the stream's timeline, the completer looks often from now on. */
static void mark_watched(struct submitter *submitter, struct client_stream *stream)
{
    struct client *client = stream->client;
    if (!timeline_is_watched(stream->ring.ring.header))
        return;
    client_stream_set_watched(stream, true);
    bits_set(client->shared.busy, stream->index);
    client_signal_completer(client);
    /* The device was faster than this thread. It wakes the sleeper itself, since the completer
     * would take another 50 us. */
    if (client_stream_reached(stream) >= client_stream_written(stream))
        timeline_wake(timeline_word(stream->ring.ring.status));
    wake_completer(&submitter->worker->wake, true);
}

/* The time of what waits is neither the time of what stands before nor of what follows. So a wait
 * of a client with a limit of its kernels' time is a batch by itself. */
static bool stands_alone(const struct client_stream *stream,
                         const struct ring_descriptor *descriptor)
{
    return stream->client->shared.kernel_time && command_is_wait(descriptor);
}

/* Runs descriptors that count as up to max commands. *done becomes their number. Returns 0 or what
 * command_run returned. */
static int run_some(struct submitter *submitter, struct client_stream *stream, uint32_t max,
                    uint32_t *done)
{
    struct ring_descriptor descriptor;
    uint32_t before = submitter->command.weight;
    int result = 0;
    bool alone = false;
    *done = 0;
    while (*done + submitter->command.weight - before < max && !alone) {
        ring_peek(&stream->ring, &descriptor);
        alone = stands_alone(stream, &descriptor);
        if (alone && *done)
            break;
        /* A stream that only waits has nothing in flight: a worker that dies here interrupts
         * nothing of it. */
        if ((result = command_look(&submitter->command, stream, &descriptor)))
            break;
        client_stream_begin(stream, &descriptor);
        suspicion_begin(&stream->client->shared.suspicion, stream->index, stream->ring.value + 1,
                        &descriptor, gate_is_singly(&submitter->worker->gate));
        result = command_run(&submitter->command, stream, &descriptor);
        if (result) {
            if (result != COMMAND_FATAL)
                client_stream_begin_undo(stream);
            break;
        }
        ring_advance(&stream->ring);
        ++*done;
    }
    return result;
}

static uint32_t descriptors_allowed(const struct client_stream *stream, uint32_t max)
{
    if (stream->state != STREAM_CLOSING)
        return max;
    uint64_t left = stream->limit - stream->ring.value;
    return left < max ? (uint32_t)left : max;
}

static int bind_stream(struct submitter *submitter, struct client_stream *stream)
{
    struct stream_pool *pool = &submitter->worker->pool;
    bool in_flight = client_stream_reached(stream) < client_stream_written(stream);
    if (in_flight && stream_pool_fits(stream))
        return 0;
    cuda_result bound = in_flight
                            ? stream_pool_move(pool, stream, command_event(&submitter->command))
                            : stream_pool_bind(pool, stream);
    if (stream_pool_wished(pool))
        wake_control(&submitter->worker->wake);
    if (in_flight && bound == CUDA_ERR_NOT_READY)
        return COMMAND_FULL;
    /* A ring that can't be moved yet goes on where it is, and tries again with its next batch. */
    if (bound == CUDA_OK || (in_flight && !cuda_driver_error_is_sticky(bound)))
        return 0;
    submitter->command.fatal = bound;
    submitter->command.loss = CONTEXT_LOSS_BINDING;
    return COMMAND_FATAL;
}

/* Commands for which the ring's hardware queue has room: with no room left the driver would block
 * this thread, which serves everybody. */
static uint32_t commands_that_fit(struct submitter *submitter, const struct client_stream *stream)
{
    uint32_t entries = stream_pool_entries_free(&submitter->worker->pool, stream);
    return entries < COMMAND_BATCH_ENTRIES
               ? 0
               : (entries - COMMAND_BATCH_ENTRIES) / COMMAND_ENTRIES_MAX;
}

/* Serves one batch of a ring and adds its completion. If commands take long, batches are short: the
 * end of work is seen only at a batch's completion. */
static int serve_batch(struct submitter *submitter, struct client_stream *stream, uint32_t max,
                       uint32_t *done)
{
    uint32_t now = 0;
    uint32_t batch = min(stream->client->gate.batch, overrun_batch(stream->client));
    activity_batch(true);
    int result = bind_stream(submitter, stream);
    uint32_t room = result ? 0 : commands_that_fit(submitter, stream);
    if (!result && room == 0)
        result = COMMAND_FULL;
    submitter->command.entries = COMMAND_BATCH_ENTRIES;
    if (!result)
        result = run_some(submitter, stream, min(max, min(batch, room)), &now);
    *done += now;
    if (result != COMMAND_FATAL && now) {
        mark_busy(submitter, stream);
        if (command_complete(&submitter->command, stream))
            result = COMMAND_FATAL;
        stream_pool_note_entries(stream, submitter->command.entries);
    }
    activity_batch(false);
    return result;
}

/* Does not look at the ring: each look takes the cache line away from the producer, which writes
 * it. */
static void pause_briefly(void)
{
    for (int i = 0; i < LINGER_PAUSES; i++)
        cpu_pause();
}

/* The clock is read once for a batch's worth of commands, and only if commands have waited. */
static void count_waits(struct submitter *submitter, struct client_stream *stream, uint32_t from,
                        uint32_t done, bool left)
{
    struct queue_latency *wait = &stream->latency;
    submitter->unclocked += done;
    if (submitter->unclocked >= SUBMITTER_BATCH && (left || wait->count)) {
        submitter->now = clock_now();
        submitter->unclocked = 0;
    }
    if (done)
        queue_latency_served(wait, stream->client->usage.waits, from, done, submitter->visits,
                             submitter->now);
    if (left)
        queue_latency_left(wait, stream->ring.tail, submitter->now);
}

/* The client may submit nothing now: notes the commands that wait in this ring. */
static void count_held(struct submitter *submitter, struct client_stream *stream)
{
    if (submitter->now < WAIT_LOOK_NS ||
        !queue_latency_looked_before(&stream->latency, submitter->now - WAIT_LOOK_NS))
        return;
    submitter->now = clock_now();
    if (ring_ready(&stream->ring) > 0) /* a false tail is reported when the ring is served */
        queue_latency_left(&stream->latency, stream->ring.tail, submitter->now);
}

/*
 * Serves batches of a ring until it is empty or max commands are done. A producer that pushes
 * faster than single batches are served gets a moment to push several. That moment is not given
 * while other clients or rings wait for the submitter: then batches grow by themselves.
 */
static int serve_ring(struct submitter *submitter, struct client_stream *stream, uint32_t max,
                      uint32_t *done, bool alone)
{
    *done = 0;
    if (client_stream_is_interrupted(stream))
        return drop_ring(submitter, stream);
    int result = 0, ready = ring_ready(&stream->ring);
    uint32_t from = stream->ring.head;
    submitter->command.weight = 0;
    while (!result && ready > 0) {
        uint32_t left = max - min(max, *done + submitter->command.weight);
        left = descriptors_allowed(stream, min(left, (uint32_t)ready));
        if (left == 0)
            break;
        bool streaming = ready > 1;
        result = serve_batch(submitter, stream, left, done);
        if (result == COMMAND_FATAL || result == COMMAND_VIOLATION)
            return result;
        if (!alone || !streaming)
            break;
        pause_briefly();
        ready = ring_ready(&stream->ring);
    }
    if (ready >= 0 && *done)
        ready = ring_consume(&stream->ring);
    if (ready < 0)
        return tail_lies(stream);
    count_waits(submitter, stream, from, *done, ready > 0);
    mark_watched(submitter, stream);
    if (result == COMMAND_BLOCKED)
        block_ring(submitter, stream);
    return result == COMMAND_FULL && *done == 0 ? COMMAND_FULL : 0;
}

/* ---- one client ---- */

static void ring_found(struct submitter *submitter, struct client_stream *stream)
{
    bits_set(stream->client->shared.ready, stream->index);
    queue_latency_rung(&stream->latency, submitter->visits, submitter->now);
}

static void hear_ring(struct submitter *submitter, struct client_stream *stream)
{
    if (blocked_rings_has(&stream->client->shared.blocked, stream->index))
        mark_watched(submitter, stream);
    else
        ring_found(submitter, stream);
}

static void take_doorbells(struct submitter *submitter, struct client *client)
{
    struct proto_client_header *header = ring_client_header(client->rings.base);
    uint64_t bits;
    /* Bounded, since a client could ring for ever. */
    for (int i = 0; i < CLIENT_STREAM_WORDS; i++) {
        int word = doorbell_take(header, client->stream_count, &bits);
        if (word < 0)
            return;
        while (bits) {
            uint32_t index = (uint32_t)word * 64 + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            struct client_stream *stream = client_stream_find(client, index);
            if (stream)
                hear_ring(submitter, stream);
        }
    }
}

/*
 * A client that waits for each of its launches uses one ring. Its doorbell's words would cross from
 * processor to processor twice for each launch, and that is a third of what one takes. So the
 * ring's tail alone is watched, which has to cross in any case, and the doorbell is looked at now
 * and then: for other rings, and so that its bits are taken before the client goes to sleep.
 */
static bool has_rung(struct client *client)
{
    struct client_submit *submit = &client->submit;
    if (!submit->tail || ++submit->looks % LOOKS_A_DOORBELL == 0)
        return doorbell_pending(ring_client_header(client->rings.base));
    uint32_t tail = shared_word_hint(submit->tail);
    submit->by_tail = tail != submit->tail_seen;
    submit->tail_seen = tail;
    return submit->by_tail;
}

/* The ring that a visit served alone is watched if the visit before served it, too. The words of
 * rings stay mapped as long as the client is visited. */
static void watch_tail(struct client *client, uint32_t served)
{
    struct client_submit *submit = &client->submit;
    const struct ring_consumer *ring = &client->streams[submit->cursor].ring;
    bool again = served == 1 && submit->lone == submit->cursor + 1;
    if (served)
        submit->lone = served == 1 ? submit->cursor + 1 : 0;
    submit->tail = again ? &ring->ring.header->tail : NULL;
    submit->tail_seen = ring->tail;
}

static void take_rung(struct submitter *submitter, struct client *client)
{
    struct client_submit *submit = &client->submit;
    struct client_stream *stream =
        submit->by_tail ? client_stream_find(client, submit->lone - 1) : NULL;
    if (stream)
        hear_ring(submitter, stream);
    else
        take_doorbells(submitter, client);
}

static uint32_t next_ready(const struct client *client, uint32_t after)
{
    uint32_t count = client->stream_count;
    uint32_t next = bits_next(client->shared.ready, after + 1, count);
    return next < count ? next : bits_next(client->shared.ready, 0, count);
}

/* Commands that the ring may add to what its queue has in flight. each_max: the most of a queue;
 * UINT64_MAX: no matter. */
static uint32_t room_of(struct submitter *submitter, const struct client_stream *stream,
                        uint64_t each_max)
{
    if (each_max == UINT64_MAX)
        return UINT32_MAX;
    uint64_t in_flight = stream_pool_in_flight(&submitter->worker->pool, stream);
    return (uint32_t)min(saturating_sub(each_max, in_flight), (uint64_t)UINT32_MAX);
}

/* The same with regard to what the room that the client was given is for. */
static uint32_t part_allowed(struct submitter *submitter, const struct client_stream *stream,
                             uint64_t each_max)
{
    uint32_t lacking_only = stream->client->gate.lacking_only;
    uint32_t room = room_of(submitter, stream, each_max);
    return lacking_only ? min(room, client_stream_lacking(stream, lacking_only)) : room;
}

/* The next ring in turn that has work and room. Returns stream_count if there is none. */
static uint32_t next_with_room(struct submitter *submitter, const struct client *client,
                               uint64_t each_max)
{
    uint32_t first = next_ready(client, client->submit.cursor), index = first;
    while (index < client->stream_count &&
           !part_allowed(submitter, &client->streams[index], each_max)) {
        index = next_ready(client, index);
        if (index == first)
            return client->stream_count;
    }
    return index;
}

static uint32_t count_ready(const struct client *client)
{
    uint32_t rings = 0;
    for (uint32_t i = 0; i < (client->stream_count + 63) / 64; i++)
        rings += (uint32_t)__builtin_popcountll(client->shared.ready[i]);
    return rings;
}

/* The part of the client's room that one ring gets, so that all ready rings get some. */
static uint32_t part_of(const struct client *client, uint32_t room)
{
    uint32_t rings = count_ready(client);
    return rings && rings < room ? room / rings : 1;
}

/* If the ring has work in flight, and no other ring waits with it, the end of some work will do.
 * Otherwise the completer's next look lets the client try again: the entries may be other
 * clients'. */
static void await_entries(struct submitter *submitter, const struct client_stream *stream)
{
    struct client *client = stream->client;
    uint32_t in_flight = client_in_flight(client);
    bool waits = client_stream_in_flight(stream) && in_flight && count_ready(client) == 1;
    client->gate.go_on_at = in_flight - waits;
    client->gate.go_on_drained = false;
    client_signal_completer(client);
    wake_completer(&submitter->worker->wake, true);
}

/* Every queue of the client has as much in flight as it may: the client goes on when half of what
 * one of them may have has ended. in_flight: before the queues were looked at, or more: the end of
 * what ended since would not be seen. */
static void await_ring(struct submitter *submitter, struct client *client, uint64_t in_flight,
                       uint64_t each_max)
{
    client->gate.go_on_at = (uint32_t)saturating_sub(in_flight, max(each_max / 2, UINT64_C(1)));
    client->gate.go_on_ns = client->gate.go_on_at * client->gate.scheduled.mean_ns;
    client->gate.go_on_drained = false;
    client_signal_completer(client);
    wake_completer(&submitter->worker->wake, true);
}

/* The most that each of the client's queues may have in flight. */
static uint64_t most_of_each(const struct gate *gate, const struct client *client)
{
    uint64_t narrow = gate_narrowed(gate);
    return narrow == GATE_WIDE ? UINT64_MAX : work_length_fit(&client->shared.length, narrow);
}

/* The gate is not asked, since nothing goes to the driver. */
static void drop_rings(struct submitter *submitter, struct client *client)
{
    uint32_t count = client->stream_count;
    for (uint32_t i = bits_next(client->shared.ready, 0, count);
         client->shared.interrupted_count && i < count;
         i = bits_next(client->shared.ready, i + 1, count)) {
        if (!client_stream_is_interrupted(&client->streams[i]))
            continue;
        bits_clear(client->shared.ready, i);
        if (drop_ring(submitter, &client->streams[i])) {
            stop_reading(client);
            return;
        }
    }
}

static bool any_ready(const struct client *client)
{
    return bits_next(client->shared.ready, 0, client->stream_count) < client->stream_count;
}

/* How much of the ring may be done now. *alone: no other ring waits for the submitter. */
static uint32_t most_of_ring(struct submitter *submitter, const struct client_stream *stream,
                             uint32_t room, uint64_t each_max, bool *alone)
{
    const struct client *client = stream->client;
    uint32_t deficit = (uint32_t)client->submit.deficit;
    /* The rings of one client are served in the same way, batch by batch. */
    *alone = next_ready(client, stream->index) == stream->index && submitter->scanned_count <= 1;
    uint32_t max = min(deficit, (uint32_t)(*alone ? SUBMITTER_VISIT_MAX : SUBMITTER_BATCH));
    max = min(max, *alone ? room : part_of(client, room));
    return min(max, part_allowed(submitter, stream, each_max));
}

/* Commands of the ring are with the driver. */
static void charge_visit(const struct submitter *submitter, struct client *client, uint32_t done)
{
    client->submit.deficit -= (int32_t)(done + submitter->command.weight);
    client->shared.in_flight += done;
    client->gate.submitted += done;
}

/* The ring is no longer ready if it is empty or must wait, and others may be ready now. */
static void mark_served(struct submitter *submitter, struct client_stream *stream, uint32_t done)
{
    struct client *client = stream->client;
    if (blocked_rings_has(&client->shared.blocked, stream->index) || done == 0 ||
        stream->ring.tail == stream->ring.head || descriptors_allowed(stream, 1) == 0)
        bits_clear(client->shared.ready, stream->index);
    if (done && client->shared.blocked.count)
        unblock_rings(submitter, client);
}

/* Serves rings until the visit is over. *end becomes the client's state in case it has more
 * to do. Returns 0 or COMMAND_FATAL. */
static int serve_client(struct submitter *submitter, struct client *client, bool *moved,
                        enum client_state *end)
{
    struct gate *gate = &submitter->worker->gate;
    const uint64_t each_max = most_of_each(gate, client);
    uint64_t in_flight = each_max == UINT64_MAX ? 0 : client_in_flight(client);
    uint32_t room = 0, served = 0;
    bool held = false;
    client->gate.lacking_only = 0;
    *end = CLIENT_READY;
    client->submit.deficit += SUBMITTER_VISIT_MAX;
    if (client->submit.deficit > SUBMITTER_VISIT_MAX)
        client->submit.deficit = SUBMITTER_VISIT_MAX;
    while (client->submit.deficit > 0) {
        uint32_t index = next_with_room(submitter, client, each_max);
        if (index == client->stream_count && any_ready(client)) {
            if (each_max != UINT64_MAX)
                await_ring(submitter, client, in_flight, each_max);
            *end = CLIENT_FULL;
        }
        if (index == client->stream_count)
            break;
        submitter->command.weighs = !gate_is_open(gate);
        if (room == 0) {
            room = gate_enter(gate, client, (uint32_t)client->submit.deficit, &held);
            if (client->gate.lacking_only)
                continue; /* with a ring that the room is for */
        }
        if (room == 0) {
            *end = held ? CLIENT_HELD : CLIENT_FULL;
            count_held(submitter, &client->streams[index]);
            break;
        }
        client->submit.cursor = index;
        struct client_stream *stream = &client->streams[index];
        bool alone;
        uint32_t done, max = most_of_ring(submitter, stream, room, each_max, &alone);
        int result = serve_ring(submitter, stream, max, &done, alone);
        charge_visit(submitter, client, done);
        in_flight += done;
        room -= done;
        *moved |= done > 0;
        served++;
        if (result == COMMAND_FATAL)
            return result;
        if (result == COMMAND_VIOLATION) {
            stop_reading(client);
            break;
        }
        if (result == COMMAND_FULL) {
            await_entries(submitter, stream);
            *end = CLIENT_FULL;
            break;
        }
        mark_served(submitter, stream, done);
        if (served == SUBMITTER_VISIT_RINGS && submitter->scanned_count > 1)
            break;
    }
    watch_tail(client, served);
    return 0;
}

/* Moves the client to where it may run now. Returns false if it may run nowhere: its placement
 * marks it when that changes. */
static bool take_place(struct submitter *submitter, struct client *client)
{
    struct worker *worker = submitter->worker;
    struct partition *to;
    uint64_t held = client->place.held_since; /* only this thread changes it */
    enum placement_answer said =
        placement_enter(&worker->places, &client->place, &to, submitter->now);
    if (said == PLACEMENT_MOVE)
        client_partition_move(worker, client, to);
    if (held && said != PLACEMENT_HOLD)
        client_partition_trace_held(worker, client, held, submitter->now);
    return said != PLACEMENT_HOLD;
}

/* Nothing was submitted, so the completer will never notice that this client is idle: the placement
 * is told here. */
static void note_idle(struct submitter *submitter, struct client *client)
{
    placement_idle(&submitter->worker->places, &client->place, submitter->now);
    wake_completer(&submitter->worker->wake, false);
}

bool submitter_find_ready(struct submitter *submitter, struct client *client)
{
    unblock_rings(submitter, client);
    return any_ready(client);
}

/* Brings the client's state and the gate up to date with what the visit found. Under its lock. */
static void end_visit(struct submitter *submitter, struct client *client, enum client_state end,
                      bool room)
{
    bool violated = client_state(client) == CLIENT_VIOLATED;
    bool more = !violated && any_ready(client);
    gate_leave(&submitter->worker->gate, client, more && room);
    if (!violated)
        client_state_set(client, more ? end : CLIENT_IDLE);
    if (!more && !atomic_load(&client->signals.completer))
        note_idle(submitter, client);
}

bool submitter_visit(struct submitter *submitter, struct client *client)
{
    struct worker *worker = submitter->worker;
    client->submit.by_tail = false;
    if (client_state(client) == CLIENT_IDLE && !has_rung(client))
        return false;
    int result = 0;
    bool moved = false, room = true;
    enum client_state end = CLIENT_READY;
    submitter->visits++;
    activity_beat(); /* a round over all clients takes seconds where the CPUs are busy */
    /* Relaxed: of those that fail the worker, this thread itself is what matters here. Nothing is
     * begun with a context that is lost: it would count as work in flight, and each attempt would
     * take an entry of the journal that says which kernels were. */
    if (atomic_load_explicit(&worker->failed, memory_order_relaxed))
        return false;
    if (client_lock_is_overdue(client)) {
        sched_yield(); /* that thread may wait for this CPU, too */
        return true;
    }
    pthread_mutex_lock(&client->lock);
    /* The client may have begun to leave since the scan set's round began. */
    if (!client_state_is_served(client_state(client))) {
        pthread_mutex_unlock(&client->lock);
        return false;
    }
    take_rung(submitter, client);
    drop_rings(submitter, client);
    bool paused = gate_is_paused(&worker->gate);
    if (any_ready(client)) {
        room = !paused && take_place(submitter, client);
        if (room)
            result = serve_client(submitter, client, &moved, &end);
        else
            end = CLIENT_HELD;
        if (paused)
            gate_turn_away(&worker->gate);
    }
    end_visit(submitter, client, end, room || paused);
    end = client_state(client);
    pthread_mutex_unlock(&client->lock);
    if (result == COMMAND_FATAL)
        worker_fail(worker, submitter->command.fatal, submitter->command.loss);
    if (end == CLIENT_VIOLATED)
        wake_control(&worker->wake);
    if (end == CLIENT_HELD)
        wake_completer(&worker->wake, true);
    /* A client that has taken all that a visit gives goes on in the next round. */
    return moved || end == CLIENT_READY || end == CLIENT_HELD;
}
