/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/stream_pool.h"

#include <assert.h>
#include <stdlib.h>

#include "common/array.h"

static bool in_flight(const struct client_stream *stream)
{
    return client_stream_reached(stream) < client_stream_written(stream);
}

void stream_pool_open(struct stream_pool *pool, const struct gpu *device)
{
    *pool = (struct stream_pool){.device = device};
    pthread_mutex_init(&pool->lock, NULL);
}

/* Forgets rings that have nothing left here, and those of this client; true if none stays. */
static bool prune_leavers(struct pool_stream *from, const struct client *client)
{
    struct pool_leaver **link = &from->leavers;
    while (*link) {
        struct pool_leaver *leaver = *link;
        if (leaver->stream->client != client &&
            client_stream_reached(leaver->stream) < leaver->value) {
            link = &leaver->next;
            continue;
        }
        *link = leaver->next;
        free(leaver);
    }
    return from->leavers == NULL;
}

static bool is_free(struct pool_stream *candidate)
{
    return candidate->user_count == 0 && prune_leavers(candidate, NULL);
}

static void destroy_at(struct stream_pool *pool, uint32_t i)
{
    struct pool_stream *gone = pool->streams[i];
    assert(gone->user_count == 0 && gone->leavers == NULL);
    pool->device->cuda->cuStreamDestroy(gone->handle);
    free(gone);
    pool->streams[i] = pool->streams[--pool->count];
}

void stream_pool_close(struct stream_pool *pool)
{
    while (pool->count)
        destroy_at(pool, pool->count - 1);
    free(pool->streams);
    pthread_mutex_destroy(&pool->lock);
    *pool = (struct stream_pool){.device = pool->device};
}

static cuda_result create_stream(struct stream_pool *pool, struct partition *partition,
                                 int32_t priority, struct pool_stream **out)
{
    const struct cuda_driver *cuda = pool->device->cuda;
    if (array_reserve(pool->streams, pool->room, (size_t)pool->count + 1) < 0)
        return CUDA_ERR_OUT_OF_MEMORY;
    struct pool_stream *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERR_OUT_OF_MEMORY;
    made->partition = partition;
    made->priority = priority;
    cuda_result result =
        partition->green
            ? cuda->cuGreenCtxStreamCreate(&made->handle, partition->green,
                                           CUDA_STREAM_NON_BLOCKING, priority)
            : cuda->cuStreamCreateWithPriority(&made->handle, CUDA_STREAM_NON_BLOCKING, priority);
    if (result != CUDA_OK) {
        free(made);
        return result;
    }
    pool->streams[pool->count++] = made;
    *out = made;
    return CUDA_OK;
}

static bool stream_fits(const struct pool_stream *candidate, const struct partition *partition,
                        int32_t priority)
{
    return candidate->partition == partition && candidate->priority == priority;
}

static struct pool_stream *find_free(struct stream_pool *pool, const struct partition *partition,
                                     int32_t priority)
{
    for (uint32_t i = 0; i < pool->count; i++)
        if (stream_fits(pool->streams[i], partition, priority) && is_free(pool->streams[i]))
            return pool->streams[i];
    return NULL;
}

static void unbind_ring(struct client_stream *stream)
{
    struct pool_stream *from = stream->bound;
    struct client_stream **link = &from->users;
    while (*link != stream)
        link = &(*link)->next_user;
    *link = stream->next_user;
    stream->next_user = NULL;
    stream->bound = NULL;
    from->user_count--;
}

static void bind_to(struct client_stream *stream, struct pool_stream *to)
{
    stream->bound = to;
    stream->next_user = to->users;
    to->users = stream;
    to->user_count++;
}

/* Rings keep their CUstream after their work is done, for the next time; now others need them. */
static void reap_idle(struct stream_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        struct client_stream *next;
        for (struct client_stream *user = pool->streams[i]->users; user; user = next) {
            next = user->next_user;
            if (!in_flight(user))
                unbind_ring(user);
        }
    }
}

static bool destroy_one_free(struct stream_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        if (is_free(pool->streams[i])) {
            destroy_at(pool, i);
            return true;
        }
    return false;
}

static bool only_of(const struct pool_stream *candidate, const struct client *client)
{
    for (const struct client_stream *user = candidate->users; user; user = user->next_user)
        if (user->client != client)
            return false;
    return true;
}

/* One's own CUstream before another client's, a less used one before a more used one. */
static struct pool_stream *find_shared(struct stream_pool *pool, const struct client *client,
                                       int32_t priority)
{
    struct pool_stream *best = NULL;
    bool best_own = false;
    for (uint32_t i = 0; i < pool->count; i++) {
        struct pool_stream *candidate = pool->streams[i];
        if (!stream_fits(candidate, client->shared.partition, priority))
            continue;
        bool own = only_of(candidate, client);
        if (!best || (own && !best_own) ||
            (own == best_own && candidate->user_count < best->user_count)) {
            best = candidate;
            best_own = own;
        }
    }
    return best;
}

static cuda_result choose_stream(struct stream_pool *pool, struct client_stream *stream,
                                 struct pool_stream **out)
{
    struct partition *partition = stream->client->shared.partition;
    *out = find_free(pool, partition, stream->priority);
    if (*out)
        return CUDA_OK;
    if (pool->count >= STREAM_POOL_QUEUES) {
        reap_idle(pool);
        *out = find_free(pool, partition, stream->priority);
        if (*out)
            return CUDA_OK;
        if (!destroy_one_free(pool)) {
            *out = find_shared(pool, stream->client, stream->priority);
            if (*out)
                return CUDA_OK;
            /* A partition without any CUstream must have one, whatever the number of queues. */
        }
    }
    cuda_result result = create_stream(pool, partition, stream->priority, out);
    if (result == CUDA_OK || cuda_error_is_sticky(result))
        return result;
    /* Without the means for another one, sharing is still better than not running at all. */
    *out = find_shared(pool, stream->client, stream->priority);
    return *out ? CUDA_OK : result;
}

cuda_result stream_pool_prepare(struct stream_pool *pool, struct partition *partition,
                                int32_t priority)
{
    cuda_result result = CUDA_OK;
    struct pool_stream *made;
    pthread_mutex_lock(&pool->lock);
    if (pool->count < STREAM_POOL_QUEUES && !find_free(pool, partition, priority))
        result = create_stream(pool, partition, priority, &made);
    pthread_mutex_unlock(&pool->lock);
    return result;
}

cuda_result stream_pool_bind(struct stream_pool *pool, struct client_stream *stream)
{
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&pool->lock);
    if (stream->bound && (!only_of(stream->bound, stream->client) || !stream_pool_fits(stream)))
        unbind_ring(stream);
    if (!stream->bound) {
        struct pool_stream *chosen;
        result = choose_stream(pool, stream, &chosen);
        if (result == CUDA_OK)
            bind_to(stream, chosen);
    }
    pthread_mutex_unlock(&pool->lock);
    return result;
}

bool stream_pool_fits(const struct client_stream *stream)
{
    return stream_fits(stream->bound, stream->client->shared.partition, stream->priority);
}

cuda_result stream_pool_move(struct stream_pool *pool, struct client_stream *stream,
                             cuda_event event)
{
    const struct cuda_driver *cuda = pool->device->cuda;
    struct pool_leaver *leaver = malloc(sizeof *leaver);
    if (!leaver)
        return CUDA_ERR_OUT_OF_MEMORY;
    pthread_mutex_lock(&pool->lock);
    struct pool_stream *from = stream->bound, *to;
    /* Its work may end just now: then choosing lets it go, and must not destroy where it was. */
    from->user_count++;
    cuda_result result = choose_stream(pool, stream, &to);
    from->user_count--;
    if (result == CUDA_OK)
        result = cuda->cuEventRecord(event, from->handle);
    if (result == CUDA_OK)
        result = cuda->cuStreamWaitEvent(to->handle, event, 0);
    if (result == CUDA_OK) {
        prune_leavers(from, NULL);
        *leaver = (struct pool_leaver){from->leavers, stream, client_stream_written(stream)};
        from->leavers = leaver;
        if (stream->bound)
            unbind_ring(stream);
        bind_to(stream, to);
    } else if (!stream->bound) {
        bind_to(stream, from);
    }
    pthread_mutex_unlock(&pool->lock);
    if (result != CUDA_OK)
        free(leaver);
    return result;
}

bool stream_pool_leave(struct stream_pool *pool, struct client *client)
{
    bool left = false;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < client->stream_count; i++) {
        struct client_stream *stream = &client->streams[i];
        if (!stream->bound || stream_pool_fits(stream))
            continue;
        if (in_flight(stream))
            left = true;
        else
            unbind_ring(stream);
    }
    pthread_mutex_unlock(&pool->lock);
    return left;
}

void stream_pool_forget(struct stream_pool *pool, const struct client *client)
{
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->count; i++)
        prune_leavers(pool->streams[i], client);
    pthread_mutex_unlock(&pool->lock);
}

bool stream_pool_drained(struct stream_pool *pool, const struct partition *partition)
{
    bool drained = true;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->streams[i]->partition == partition)
            drained &= is_free(pool->streams[i]);
    pthread_mutex_unlock(&pool->lock);
    return drained;
}

void stream_pool_unbind(struct stream_pool *pool, struct client_stream *stream)
{
    pthread_mutex_lock(&pool->lock);
    if (stream->bound)
        unbind_ring(stream);
    pthread_mutex_unlock(&pool->lock);
}

void stream_pool_drop(struct stream_pool *pool, const struct partition *partition)
{
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = pool->count; i-- > 0;)
        if (pool->streams[i]->partition == partition && is_free(pool->streams[i]))
            destroy_at(pool, i);
    pthread_mutex_unlock(&pool->lock);
}

uint32_t stream_pool_shared(struct stream_pool *pool, const struct client *client)
{
    uint32_t shared = 0;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->count; i++) {
        uint32_t own = 0, others = 0;
        for (const struct client_stream *user = pool->streams[i]->users; user;
             user = user->next_user)
            if (in_flight(user))
                *(user->client == client ? &own : &others) += 1;
        if (others)
            shared += own;
    }
    pthread_mutex_unlock(&pool->lock);
    return shared;
}

cuda_result stream_pool_query(struct stream_pool *pool)
{
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&pool->lock);
    /* One CUstream with work a call, in turn: any of them tells that the context is lost. */
    for (uint32_t n = 0; n < pool->count; n++) {
        struct pool_stream *candidate = pool->streams[pool->looked_at++ % pool->count];
        bool busy = false;
        for (const struct client_stream *user = candidate->users; user && !busy;
             user = user->next_user)
            busy = in_flight(user);
        busy |= !prune_leavers(candidate, NULL);
        if (!busy)
            continue;
        result = pool->device->cuda->cuStreamQuery(candidate->handle);
        break;
    }
    pthread_mutex_unlock(&pool->lock);
    return result;
}
