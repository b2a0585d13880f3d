/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/client_stream.h"

#include <stddef.h>
#include <sys/mman.h>

#include "common/ipc/shared_word.h"
#include "common/ipc/timeline.h"
#include "common/util.h"
#include "server/worker/client/client.h"

uint64_t client_stream_reached(const struct client_stream *stream)
{
    /* In memory that the device writes, so no _Atomic. Words that the work wrote into host memory
     * are seen with it. */
    return stream->shadow ? shared_word_read(stream->shadow) : 0;
}

void client_stream_set_reached(struct client_stream *stream, uint64_t value)
{
    /* Another device's worker that reads it sees what was done before. */
    shared_word_publish(stream->shadow, value);
}

uint64_t client_stream_written(const struct client_stream *stream)
{
    /* Acquired: a thread that does not hold the client's lock sees the submission that the value
     * stands for. */
    return atomic_load_explicit(&stream->written, memory_order_acquire);
}

void client_stream_begin(struct client_stream *stream, const struct ring_descriptor *command)
{
    struct client_submit *submit = &stream->client->submit;
    journal_note(submit->journal, &submit->journal_next, stream->index, stream->ring.value + 1,
                 command);
    shared_word_publish(stream->begun, stream->ring.value + 1);
}

void client_stream_begin_undo(struct client_stream *stream)
{
    shared_word_publish(stream->begun, stream->ring.value);
}

static uint64_t *shadow_lost_from(const struct client_stream *stream)
{
    return ring_shadow_lost_from(stream->client->shadows.base, stream->client->stream_count,
                                 stream->index);
}

static uint64_t *shadow_lost_to(const struct client_stream *stream)
{
    return ring_shadow_lost_to(stream->client->shadows.base, stream->client->stream_count,
                               stream->index);
}

/* The beginning before the end: a reader that sees the end sees its beginning. */
static void show_lost(const struct client_stream *stream)
{
    struct proto_stream_status *status = stream->ring.ring.status;
    shared_word_publish(&status->lost_from, stream->lost_from);
    shared_word_publish(&status->lost_to, stream->lost_to);
}

/* The same order. A worker that dies before it has shown it to the client leaves that to the next
 * one (find_losses). */
static void set_lost(struct client_stream *stream, uint64_t from, uint64_t to)
{
    stream->lost_from = from;
    stream->lost_to = to;
    shared_word_publish(shadow_lost_from(stream), from);
    shared_word_publish(shadow_lost_to(stream), to);
    show_lost(stream);
}

void client_stream_interrupt(struct client_stream *stream, uint64_t finished)
{
    bool known = client_stream_is_interrupted(stream);
    if (!known)
        stream->client->shared.interrupted_count++;
    set_lost(stream, known ? min(stream->lost_from, finished) : finished, RING_INTERRUPTED);
    client_stream_report(stream, PROTO_ERROR_INTERRUPTED);
}

/* Moves the whole timeline to a value, in the device's place. */
static void set_timeline(struct client_stream *stream, uint64_t value)
{
    shared_word_publish(stream->begun, value);
    atomic_store(&stream->written, value);
    /* The client's word first, as the device writes them. */
    shared_word_publish(&stream->ring.ring.status->completed, value);
    client_stream_set_reached(stream, value);
}

int client_stream_drop(struct client_stream *stream)
{
    int ready = ring_ready(&stream->ring);
    for (int i = 0; i < ready; i++)
        ring_advance(&stream->ring);
    if (ready > 0) {
        set_timeline(stream, stream->ring.value);
        ready = ring_consume(&stream->ring);
    }
    timeline_wake(timeline_word(stream->ring.ring.status));
    return min(ready, 0);
}

bool client_stream_dependency_lost(const struct client *client, const struct proto_dependency *on)
{
    if (!on->link)
        return ring_has_lost(client->streams[on->stream].lost_from,
                             client->streams[on->stream].lost_to, on->value);
    const struct link *link = &client->objects.links[on->link - 1];
    uint64_t *to = ring_shadow_lost_to(link->shadows.base, link->streams, on->stream);
    uint64_t *from = ring_shadow_lost_from(link->shadows.base, link->streams, on->stream);
    /* Its end first; set_lost writes it last. */
    uint64_t lost_to = shared_word_read(to);
    return ring_has_lost(shared_word_read(from), lost_to, on->value);
}

bool client_stream_recover(struct client_stream *stream, uint64_t *finished, uint64_t *dropped)
{
    uint64_t value = client_stream_pushed(stream);
    bool interrupted = client_stream_is_interrupted(stream);
    if (interrupted && client_stream_reached(stream) != value)
        return false;
    if (interrupted) {
        set_lost(stream, stream->lost_from, value);
        stream->client->shared.interrupted_count--;
    }
    bool latest = stream->lost_to && stream->lost_to == stream->ring.value;
    *finished = latest ? stream->lost_from : client_stream_reached(stream);
    *dropped = latest ? stream->lost_to - stream->lost_from : 0;
    return true;
}

uint32_t client_stream_lacking(const struct client_stream *stream, uint32_t each)
{
    uint64_t in_flight = saturating_sub(stream->ring.value, client_stream_reached(stream));
    return each - (uint32_t)min(in_flight, (uint64_t)each);
}

uint64_t client_stream_pushed(const struct client_stream *stream)
{
    return ring_pushed(&stream->ring);
}

uint64_t client_stream_status_address(const struct client_stream *stream)
{
    return stream->client->status_device + PROTO_STATUS_FIRST +
           stream->index * sizeof(struct proto_stream_status) +
           offsetof(struct proto_stream_status, completed);
}

uint64_t client_stream_shadow_address(const struct client_stream *stream)
{
    return stream->client->shadows_device + stream->index * sizeof(uint64_t);
}

bool client_stream_has_ended(const struct client_stream *stream)
{
    if (stream->state != STREAM_CLOSING)
        return false;
    uint64_t limit = stream->limit;
    /* Of a client that is served no more, what lies in the ring is never handed to the device. */
    if (!client_state_is_served(client_state(stream->client)) &&
        limit > client_stream_written(stream))
        limit = client_stream_written(stream);
    return client_stream_reached(stream) >= limit;
}

void client_stream_set_watched(struct client_stream *stream, bool watched)
{
    if (stream->watched == watched)
        return;
    stream->watched = watched;
    if (watched)
        stream->client->shared.watched_count++;
    else
        stream->client->shared.watched_count--;
}

void client_stream_report(struct client_stream *stream, uint32_t error)
{
    struct proto_stream_status *status = stream->ring.ring.status;
    shared_word_write(&status->error, error);
    /* Behind the number, so that a client that sees the count grow sees which error it was. */
    shared_word_publish_add(&status->error_count, 1);
}

static bool has_local_memory(const struct client_stream *stream)
{
    const struct client *client = stream->client;
    uint64_t bytes = stream->blocked_on.local_bytes;
    return bytes <= local_memory_room(&client->gpu->local) ||
           (client->shared.local_refused && bytes >= client->shared.local_refused);
}

bool client_stream_may_go_on(const struct client_stream *stream)
{
    const struct client *client = stream->client;
    if (!has_local_memory(stream))
        return false;
    if (stream->blocked_on.own_end && client_stream_in_flight(stream))
        return false;
    for (uint32_t i = 0; i < stream->blocked_on.count; i++) {
        const struct proto_dependency *on = &stream->blocked_on.on[i];
        uint64_t there;
        /* Acquired: work that this worker submits next sees what the other device wrote. */
        if (on->link)
            there = shared_word_read((uint64_t *)client->objects.links[on->link - 1].shadows.base +
                                     on->stream);
        else
            there = client->streams[on->stream].ring.value;
        if (there < on->value)
            return false;
    }
    return true;
}

static int32_t clamp_priority(const struct client *client, int32_t wish)
{
    /* Greater priorities are smaller numbers. */
    return max(min(wish, client->shared.priority_last), client->shared.priority_first);
}

int32_t client_stream_priority(const struct client *client, const struct client_stream *stream,
                               bool at_home)
{
    return max(clamp_priority(client, stream->wish) - (at_home ? 1 : 0),
               client->shared.priority_first);
}

void client_stream_find_priorities(struct client *client)
{
    /* Relaxed: what changes it has the streams looked at again. */
    bool at_home = atomic_load_explicit(&client->place.at_home, memory_order_relaxed);
    for (uint32_t i = 0; i < client->stream_count; i++)
        if (client->streams[i].state != STREAM_FREE)
            client->streams[i].priority =
                client_stream_priority(client, &client->streams[i], at_home);
}

void client_stream_set_range(struct client *client, int32_t first, int32_t last)
{
    client->shared.priority_first = first;
    client->shared.priority_last = last;
    client_stream_find_priorities(client);
}

/* Not from the heap: calloc would fill with zeroes, and so touch, what it had from the system
 * before. */
struct client_stream *client_stream_make_table(uint32_t count)
{
    void *table = mmap(NULL, count * sizeof(struct client_stream), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return table == MAP_FAILED ? NULL : table;
}

void client_stream_free_table(struct client_stream *table, uint32_t count)
{
    if (table)
        munmap(table, count * sizeof *table);
}

void client_stream_end_timelines(struct client *client)
{
    uint64_t *shadows = client->shadows.base;
    for (uint32_t i = 0; i < client->stream_count; i++)
        shared_word_publish(&shadows[i], UINT64_MAX);
}

/* Before its first stream opens, an entry is zeroes. */
static void prepare_entry(struct client *client, uint32_t index)
{
    struct client_stream *stream = &client->streams[index];
    if (stream->client)
        return;
    stream->client = client;
    stream->index = index;
    stream->shadow = ring_shadow_reached(client->shadows.base, index);
    stream->begun = ring_shadow_begun(client->shadows.base, client->stream_count, index);
    stream->ring.ring = ring_at(client->rings.base, client->status.base, index);
}

/* The device writes the client's word before the private one, so a client may have seen more than
 * the private word says; its own word tells it nothing else. */
static uint64_t reached_before(const struct client_stream *stream, uint64_t begun)
{
    uint64_t seen = shared_word_read(&stream->ring.ring.status->completed);
    return min(max(shared_word_read(stream->shadow), seen), begun);
}

/* Work that the lost worker had begun, and the device was not seen to finish, is lost. An
 * interruption from before goes on, and may have begun later than what was in flight then. That
 * worker may have died before it had shown or told the client what it had noted; to tell the client
 * twice tells it nothing new. */
static void find_losses(struct client_stream *stream, uint64_t begun)
{
    uint64_t reached = reached_before(stream, begun);
    stream->lost_from = shared_word_read(shadow_lost_from(stream));
    stream->lost_to = shared_word_read(shadow_lost_to(stream));
    show_lost(stream);
    bool interrupted = client_stream_is_interrupted(stream);
    if (interrupted)
        stream->client->shared.interrupted_count++;
    if (interrupted || reached < begun)
        client_stream_interrupt(stream, reached);
}

/* A stream that takes over a number's timeline begins with nothing lost. */
static void forget_losses(struct client_stream *stream)
{
    if (client_stream_is_interrupted(stream))
        stream->client->shared.interrupted_count--;
    if (stream->lost_to)
        set_lost(stream, stream->lost_from, stream->ring.value);
}

struct client_stream *client_stream_open(struct client *client, uint32_t index, int32_t priority)
{
    if (index >= client->stream_count || client->streams[index].state != STREAM_FREE)
        return NULL;
    prepare_entry(client, index);
    struct client_stream *stream = &client->streams[index];
    uint64_t value = shared_word_read(stream->begun);
    if (client->control.restoring) {
        ring_consumer_resume(&stream->ring, stream->ring.ring, value);
        find_losses(stream, value);
    } else {
        ring_consumer_open(&stream->ring, stream->ring.ring, value);
        forget_losses(stream);
    }
    set_timeline(stream, value);
    stream->woken = value;
    stream->latency = (struct queue_latency){0};
    stream->entries = (struct stream_entries){0};
    stream->wish = priority;
    stream->priority = client_stream_priority(
        client, stream, atomic_load_explicit(&client->place.at_home, memory_order_relaxed));
    stream->state = STREAM_OPEN;
    return stream;
}

void client_stream_close(struct client *client, struct client_stream *stream)
{
    stream->limit = client_stream_pushed(stream);
    stream->state = STREAM_CLOSING;
    client->shared.closing_count++;
    client_signal_completer(client);
}

void client_stream_free(struct client *client, struct client_stream *stream)
{
    bits_clear(client->shared.ready, stream->index);
    blocked_rings_remove(&client->shared.blocked, stream);
    /* The completer's next look may find the timeline of the number's next stream. */
    if (stream->watched)
        timeline_wake(timeline_word(stream->ring.ring.status));
    client_stream_set_watched(stream, false);
    stream->state = STREAM_FREE;
    client->shared.closing_count--;
}

struct client_stream *client_stream_find(struct client *client, uint32_t index)
{
    if (index >= client->stream_count || client->streams[index].state == STREAM_FREE)
        return NULL;
    return &client->streams[index];
}
