/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/driver_queue.h"

#include "common/util.h"
#include "server/worker/sharing/pool_stream.h"

/* Rings that are looked at for each batch that finds its own ring idle: a client may have thousands
 * on one queue, and the submitter serves everybody. */
#define LOOKS_MAX 16

void driver_queue_set_open(struct driver_queue_set *set, uint32_t count)
{
    *set = (struct driver_queue_set){.count = count};
}

struct driver_queue *driver_queue_take(struct driver_queue_set *set)
{
    return &set->queues[set->next++ % set->count];
}

void driver_queue_reserve(struct driver_queue *queue)
{
    queue->reserved = true;
}

void driver_queue_join(struct driver_queue *queue, struct pool_stream *stream)
{
    stream->queue = queue;
    stream->queue_next = queue->streams;
    queue->streams = stream;
    queue->stream_count++;
}

void driver_queue_leave(struct pool_stream *stream)
{
    struct pool_stream **link = &stream->queue->streams;
    while (*link != stream)
        link = &(*link)->queue_next;
    *link = stream->queue_next;
    stream->queue->stream_count--;
    stream->queue = NULL;
}

static void count_ring(struct driver_queue_use *use, const struct client_stream *ring,
                       const struct client *client)
{
    *(ring->client == client ? &use->own : &use->others) += 1;
}

struct driver_queue_use driver_queue_use(const struct driver_queue *queue,
                                         const struct client *client)
{
    struct driver_queue_use use = {0};
    for (const struct pool_stream *at = queue->streams; at; at = at->queue_next) {
        for (const struct client_stream *user = at->users; user; user = user->next_user)
            count_ring(&use, user, client);
        for (const struct pool_leaver *leaver = at->leavers; leaver; leaver = leaver->next)
            if (client_stream_reached(leaver->stream) < leaver->value)
                count_ring(&use, leaver->stream, client);
    }
    return use;
}

struct driver_queue_use driver_queue_busy(const struct driver_queue *queue,
                                          const struct client *client)
{
    struct driver_queue_use use = {0};
    for (const struct pool_stream *at = queue->streams; at; at = at->queue_next)
        for (const struct client_stream *user = at->users; user; user = user->next_user)
            if (client_stream_in_flight(user))
                count_ring(&use, user, client);
    return use;
}

bool driver_queue_is_idle(const struct driver_queue *queue)
{
    uint32_t looks = 0;
    for (const struct pool_stream *at = queue->streams; at; at = at->queue_next) {
        for (const struct client_stream *user = at->users; user; user = user->next_user)
            if (++looks > LOOKS_MAX || client_stream_in_flight(user))
                return false;
        for (const struct pool_leaver *leaver = at->leavers; leaver; leaver = leaver->next)
            if (++looks > LOOKS_MAX || client_stream_reached(leaver->stream) < leaver->value)
                return false;
    }
    return !queue->reserved;
}

static uint64_t ring_stands(const struct client_stream *ring, uint64_t now)
{
    /* Relaxed: what is seen late is looked at again. */
    uint64_t moved_at = atomic_load_explicit(&ring->moved_at, memory_order_relaxed);
    return moved_at ? saturating_sub(now, moved_at) : 0;
}

uint64_t driver_queue_stands(const struct driver_queue *queue, const struct client *client,
                             uint64_t now)
{
    uint64_t longest = 0;
    for (const struct pool_stream *at = queue->streams; at; at = at->queue_next) {
        for (const struct client_stream *user = at->users; user; user = user->next_user)
            if (user->client != client && client_stream_in_flight(user))
                longest = max(longest, ring_stands(user, now));
        for (const struct pool_leaver *leaver = at->leavers; leaver; leaver = leaver->next)
            if (leaver->stream->client != client &&
                client_stream_reached(leaver->stream) < leaver->value)
                longest = max(longest, ring_stands(leaver->stream, now));
    }
    return longest;
}

uint64_t driver_queue_in_flight(const struct driver_queue *queue, const struct client *client)
{
    uint64_t in_flight = 0;
    for (const struct pool_stream *at = queue->streams; at; at = at->queue_next)
        for (const struct client_stream *user = at->users; user; user = user->next_user)
            if (user->client == client)
                in_flight += client_stream_written(user) - client_stream_reached(user);
    return in_flight;
}

uint32_t driver_queue_count_own(const struct driver_queue_set *set, const struct client *client)
{
    uint32_t own = 0;
    for (uint32_t i = 0; i < set->count; i++)
        own += atomic_load(&set->queues[i].home) == client ||
               driver_queue_use(&set->queues[i], client).own;
    return own;
}

uint32_t driver_queue_count_free(const struct driver_queue_set *set)
{
    uint32_t unused = 0;
    for (uint32_t i = 0; i < set->count; i++)
        unused += !driver_queue_is_foreign(&set->queues[i], NULL) &&
                  driver_queue_use(&set->queues[i], NULL).others == 0;
    return unused;
}

uint32_t driver_queue_count_entries(struct driver_queue *queue)
{
    queue->entries = 0;
    for (const struct pool_stream *at = queue->streams; at; at = at->queue_next) {
        for (struct client_stream *user = at->users; user; user = user->next_user)
            queue->entries += stream_entries_left(&user->entries, client_stream_reached(user));
        for (const struct pool_leaver *leaver = at->leavers; leaver; leaver = leaver->next)
            if (client_stream_reached(leaver->stream) < leaver->value)
                queue->entries += leaver->entries;
    }
    return queue->entries;
}

bool driver_queue_serves(const struct driver_queue *queue, const struct partition *partition)
{
    for (const struct pool_stream *at = queue->streams; at; at = at->queue_next)
        if (at->partition == partition)
            return true;
    return false;
}

/* Greater is better. */
static uint64_t rank_home(const struct driver_queue *queue, const struct client *client)
{
    struct driver_queue_use use = driver_queue_use(queue, client);
    uint64_t alone = use.others == 0, own = use.own > 0;
    return alone << 33 | own << 32 | (UINT32_MAX - queue->stream_count);
}

struct driver_queue *driver_queue_find_home(struct driver_queue_set *set,
                                            const struct client *client,
                                            const struct partition *partition)
{
    struct driver_queue *best = NULL;
    for (uint32_t i = 0; i < set->count; i++) {
        struct driver_queue *queue = &set->queues[i];
        if (driver_queue_is_foreign(queue, NULL) || !driver_queue_serves(queue, partition))
            continue;
        if (!best || rank_home(queue, client) > rank_home(best, client))
            best = queue;
    }
    return best;
}
