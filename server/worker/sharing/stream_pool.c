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

/* Forgets rings that have no work left on this CUstream, and all rings of this client. Returns
 * whether no ring stays. */
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

/* Takes a CUstream out of the table. It is the caller's, to be destroyed without the lock:
 * destroying may wait for the device, and the submitter takes the lock. */
static struct pool_stream *take_out(struct stream_pool *pool, uint32_t i)
{
    struct pool_stream *gone = pool->streams[i];
    assert(gone->user_count == 0 && gone->leavers == NULL);
    pool->streams[i] = pool->streams[--pool->count];
    return gone;
}

static void destroy_stream(struct stream_pool *pool, struct pool_stream *gone)
{
    pool->device->cuda->cuStreamDestroy(gone->handle);
    free(gone);
}

void stream_pool_close(struct stream_pool *pool)
{
    while (pool->count)
        destroy_stream(pool, take_out(pool, pool->count - 1));
    free(pool->streams);
    pthread_mutex_destroy(&pool->lock);
    *pool = (struct stream_pool){.device = pool->device};
}

/* Without the lock, which is taken to put the new CUstream into the table. */
static cuda_result create_stream(struct stream_pool *pool, struct partition *partition,
                                 int32_t priority)
{
    const struct cuda_driver *cuda = pool->device->cuda;
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
    pthread_mutex_lock(&pool->lock);
    bool room = array_reserve(pool->streams, pool->room, (size_t)pool->count + 1) == 0;
    if (room)
        pool->streams[pool->count++] = made;
    pthread_mutex_unlock(&pool->lock);
    if (room)
        return CUDA_OK;
    destroy_stream(pool, made);
    return CUDA_ERR_OUT_OF_MEMORY;
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

/* Rings keep their CUstream when their work is done, in case more comes. Now other rings need
 * them. */
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

static bool only_of(const struct pool_stream *candidate, const struct client *client)
{
    for (const struct client_stream *user = candidate->users; user; user = user->next_user)
        if (user->client != client)
            return false;
    return true;
}

/* How good it is to share this one; more is better. One's own before another client's, since a
 * client that waits for itself waits for nobody else; then the right priority. */
static unsigned sharing_rank(const struct pool_stream *candidate,
                             const struct client_stream *stream)
{
    return (only_of(candidate, stream->client) ? 2 : 0) +
           (candidate->priority == stream->priority ? 1 : 0);
}

/* Of those of one rank, the one that is used least. */
static struct pool_stream *find_shared(struct stream_pool *pool, const struct client_stream *stream)
{
    struct pool_stream *best = NULL;
    for (uint32_t i = 0; i < pool->count; i++) {
        struct pool_stream *candidate = pool->streams[i];
        if (candidate->partition != stream->client->shared.partition)
            continue;
        unsigned rank = sharing_rank(candidate, stream);
        unsigned best_rank = best ? sharing_rank(best, stream) : 0;
        if (!best || rank > best_rank ||
            (rank == best_rank && candidate->user_count < best->user_count))
            best = candidate;
    }
    return best;
}

/* Notes what could not be had. One wish is kept: the ring that shares now wishes again when it is
 * next bound. */
static void note_wish(struct stream_pool *pool, const struct client_stream *stream)
{
    pool->wish.partition = stream->client->shared.partition;
    pool->wish.priority = stream->priority;
    atomic_store(&pool->wished, true);
}

/* NULL: the partition has no CUstream, which stream_pool_prepare's caller does not let happen. */
static struct pool_stream *choose_stream(struct stream_pool *pool,
                                         const struct client_stream *stream)
{
    const struct partition *partition = stream->client->shared.partition;
    struct pool_stream *found = find_free(pool, partition, stream->priority);
    if (!found) {
        reap_idle(pool);
        found = find_free(pool, partition, stream->priority);
    }
    if (found)
        return found;
    note_wish(pool, stream);
    return find_shared(pool, stream);
}

/* ---- making CUstreams: the control thread ---- */

static uint32_t count_fitting(const struct stream_pool *pool, const struct partition *partition,
                              int32_t priority)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        count += stream_fits(pool->streams[i], partition, priority);
    return count;
}

static uint32_t count_of_partition(const struct stream_pool *pool,
                                   const struct partition *partition)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        count += pool->streams[i]->partition == partition;
    return count;
}

/* A free CUstream that something else may take the place of. The last one of a partition stays: the
 * submitter may come to the partition at any time, and makes none. */
static struct pool_stream *take_victim(struct stream_pool *pool, const struct partition *partition,
                                       int32_t priority)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        struct pool_stream *candidate = pool->streams[i];
        if (!stream_fits(candidate, partition, priority) && is_free(candidate) &&
            count_of_partition(pool, candidate->partition) > 1)
            return take_out(pool, i);
    }
    return NULL;
}

cuda_result stream_pool_prepare(struct stream_pool *pool, struct partition *partition,
                                int32_t priority, uint32_t count)
{
    cuda_result result = CUDA_OK;
    while (result == CUDA_OK) {
        struct pool_stream *victim = NULL;
        pthread_mutex_lock(&pool->lock);
        uint32_t there = count_fitting(pool, partition, priority);
        bool enough = there >= count;
        /* A partition without any CUstream gets one, whatever the number of queues. */
        if (!enough && pool->count >= STREAM_POOL_QUEUES && count_of_partition(pool, partition)) {
            victim = take_victim(pool, partition, priority);
            enough = victim == NULL;
        }
        pthread_mutex_unlock(&pool->lock);
        if (victim)
            destroy_stream(pool, victim);
        if (enough)
            return there >= count ? CUDA_OK : CUDA_ERR_NOT_READY;
        result = create_stream(pool, partition, priority);
    }
    return result;
}

bool stream_pool_has(struct stream_pool *pool, const struct partition *partition)
{
    pthread_mutex_lock(&pool->lock);
    bool has = count_of_partition(pool, partition) > 0;
    pthread_mutex_unlock(&pool->lock);
    return has;
}

bool stream_pool_take_wish(struct stream_pool *pool, struct stream_wish *wish, uint32_t *there)
{
    if (!atomic_exchange(&pool->wished, false))
        return false;
    pthread_mutex_lock(&pool->lock);
    *wish = pool->wish;
    pool->wish = (struct stream_wish){0};
    *there = count_fitting(pool, wish->partition, wish->priority);
    pthread_mutex_unlock(&pool->lock);
    return wish->partition != NULL;
}

/* ---- binding rings: the submitter ---- */

cuda_result stream_pool_bind(struct stream_pool *pool, struct client_stream *stream)
{
    pthread_mutex_lock(&pool->lock);
    if (stream->bound && (!only_of(stream->bound, stream->client) || !stream_pool_fits(stream)))
        unbind_ring(stream);
    if (!stream->bound) {
        struct pool_stream *chosen = choose_stream(pool, stream);
        if (chosen)
            bind_to(stream, chosen);
    }
    bool bound = stream->bound != NULL;
    pthread_mutex_unlock(&pool->lock);
    return bound ? CUDA_OK : CUDA_ERR_NOT_READY;
}

bool stream_pool_fits(const struct client_stream *stream)
{
    return stream_fits(stream->bound, stream->client->shared.partition, stream->priority);
}

/* Has `to` wait for what is in `from`. */
static cuda_result order_streams(const struct stream_pool *pool, const struct pool_stream *from,
                                 const struct pool_stream *to, cuda_event event)
{
    cuda_result result = pool->device->cuda->cuEventRecord(event, from->handle);
    return result == CUDA_OK ? pool->device->cuda->cuStreamWaitEvent(to->handle, event, 0) : result;
}

cuda_result stream_pool_move(struct stream_pool *pool, struct client_stream *stream,
                             cuda_event event)
{
    struct pool_leaver *leaver = malloc(sizeof *leaver);
    if (!leaver)
        return CUDA_ERR_OUT_OF_MEMORY;
    pthread_mutex_lock(&pool->lock);
    struct pool_stream *from = stream->bound;
    /* Its work may end just now: then choosing lets it go, and must not destroy where it was. */
    from->user_count++;
    struct pool_stream *to = choose_stream(pool, stream);
    if (to)
        to->user_count++;
    pthread_mutex_unlock(&pool->lock);
    cuda_result result = to ? order_streams(pool, from, to, event) : CUDA_ERR_NOT_READY;
    pthread_mutex_lock(&pool->lock);
    from->user_count--;
    if (to)
        to->user_count--;
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

void stream_pool_release_idle(struct stream_pool *pool, struct client *client)
{
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < client->stream_count; i++)
        if (client->streams[i].bound && !in_flight(&client->streams[i]))
            unbind_ring(&client->streams[i]);
    pthread_mutex_unlock(&pool->lock);
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
    struct pool_stream *gone;
    do {
        gone = NULL;
        pthread_mutex_lock(&pool->lock);
        for (uint32_t i = 0; i < pool->count && !gone; i++)
            if (pool->streams[i]->partition == partition && is_free(pool->streams[i]))
                gone = take_out(pool, i);
        if (pool->wish.partition == partition)
            pool->wish = (struct stream_wish){0};
        pthread_mutex_unlock(&pool->lock);
        if (gone)
            destroy_stream(pool, gone);
    } while (gone);
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

/* The next CUstream with work in flight, which can't be destroyed until it is let go. NULL: none
 * has. */
static struct pool_stream *pin_busy(struct stream_pool *pool)
{
    struct pool_stream *found = NULL;
    pthread_mutex_lock(&pool->lock);
    /* In turn: any of them tells that the context is lost. */
    for (uint32_t n = 0; n < pool->count && !found; n++) {
        struct pool_stream *candidate = pool->streams[pool->looked_at++ % pool->count];
        bool busy = false;
        for (const struct client_stream *user = candidate->users; user && !busy;
             user = user->next_user)
            busy = in_flight(user);
        busy |= !prune_leavers(candidate, NULL);
        if (busy)
            found = candidate;
    }
    if (found)
        found->user_count++;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

cuda_result stream_pool_query(struct stream_pool *pool)
{
    struct pool_stream *busy = pin_busy(pool);
    if (!busy)
        return CUDA_OK;
    cuda_result result = pool->device->cuda->cuStreamQuery(busy->handle);
    pthread_mutex_lock(&pool->lock);
    busy->user_count--;
    pthread_mutex_unlock(&pool->lock);
    return result;
}
