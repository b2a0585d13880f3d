/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/client_stream.h"

#include <stddef.h>
#include <sys/mman.h>

#include "common/ipc/shared_word.h"
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

void client_stream_begin(struct client_stream *stream)
{
    shared_word_publish(stream->begun, stream->ring.value + 1);
}

void client_stream_begin_undo(struct client_stream *stream)
{
    shared_word_publish(stream->begun, stream->ring.value);
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

struct client_stream *client_stream_open(struct client *client, uint32_t index, int32_t priority)
{
    if (index >= client->stream_count || client->streams[index].state != STREAM_FREE)
        return NULL;
    prepare_entry(client, index);
    struct client_stream *stream = &client->streams[index];
    uint64_t value = shared_word_read(stream->begun);
    if (client->control.restoring)
        ring_consumer_resume(&stream->ring, stream->ring.ring, value);
    else
        ring_consumer_open(&stream->ring, stream->ring.ring, value);
    client_stream_set_reached(stream, value);
    atomic_store(&stream->written, value);
    stream->woken = value;
    stream->latency = (struct queue_latency){0};
    stream->entries = (struct stream_entries){0};
    stream->watched = false;
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

struct client_stream *client_stream_find(struct client *client, uint32_t index)
{
    if (index >= client->stream_count || client->streams[index].state == STREAM_FREE)
        return NULL;
    return &client->streams[index];
}
