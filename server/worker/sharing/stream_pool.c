/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/stream_pool.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/util.h"
#include "server/worker/sharing/stream_choice.h"

void stream_pool_open(struct stream_pool *pool, const struct gpu *gpu)
{
    *pool = (struct stream_pool){.gpu = gpu, .changes = 1};
    driver_queue_set_open(&pool->queues, DRIVER_QUEUES);
    pool->entries_max = DRIVER_QUEUE_ENTRIES;
    pthread_mutex_init(&pool->lock, NULL);
}

/* Takes a CUstream out of the table. It is the caller's, to be destroyed without the lock. */
static struct pool_stream *take_out(struct stream_pool *pool, uint32_t i)
{
    struct pool_stream *gone = pool->streams[i];
    driver_queue_leave(gone);
    pool->changes++;
    pool->streams[i] = pool->streams[--pool->count];
    return gone;
}

void stream_pool_close(struct stream_pool *pool)
{
    while (pool->count)
        pool_stream_destroy(take_out(pool, pool->count - 1), pool->gpu);
    free(pool->streams);
    pthread_mutex_destroy(&pool->lock);
    *pool = (struct stream_pool){.gpu = pool->gpu};
}

/* ---- rings ---- */

static void unbind_ring(struct stream_pool *pool, struct client_stream *stream)
{
    struct pool_stream *from = stream->bound;
    struct client_stream **link = &from->users;
    while (*link != stream)
        link = &(*link)->next_user;
    *link = stream->next_user;
    stream->next_user = NULL;
    stream->bound = NULL;
    from->user_count--;
    if (--stream->client->queues.rings == 0)
        pool->active--;
}

static void bind_to(struct stream_pool *pool, struct client_stream *stream, struct pool_stream *to)
{
    stream->bound = to;
    stream->next_user = to->users;
    to->users = stream;
    to->user_count++;
    if (stream->client->queues.rings++ == 0)
        pool->active++;
}

/* Rings keep their CUstream when their work is done, in case more comes. Now other rings need
 * them. */
static void reap_idle(struct stream_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        struct client_stream *next;
        for (struct client_stream *user = pool->streams[i]->users; user; user = next) {
            next = user->next_user;
            if (client_stream_in_flight(user))
                continue;
            unbind_ring(pool, user);
            pool->changes++;
        }
    }
}

/* ---- choosing ---- */

/* NULL: the partition has no CUstream, which those who give it to a client don't let happen. */
static struct pool_stream *choose_stream(struct stream_pool *pool, struct stream_choice *choice)
{
    struct pool_stream *found = stream_choice_look(pool, choice);
    pool->choices++;
    if (!found)
        return NULL;
    if (stream_choice_could_be_better(pool, choice, found)) {
        reap_idle(pool);
        found = stream_choice_look(pool, choice);
    }
    choice->best = !stream_choice_could_be_better(pool, choice, found);
    if (!choice->best)
        stream_choice_wish(pool, choice);
    return found;
}

static bool is_of_right_kind(const struct client_stream *stream)
{
    return pool_stream_is_of(stream->bound, stream->client->shared.partition, stream->priority);
}

/* The ring was just bound to what was chosen, if anything. A leaver may end at any time, and then
 * another choice would be better. */
static void note_choice(const struct stream_pool *pool, struct client_stream *stream, bool best)
{
    bool settled = best && pool->leavers == 0 && is_of_right_kind(stream);
    stream->settled = settled ? pool->changes : 0;
}

/* Whether choosing would lead to where the ring is. Without this, each batch of a ring that has to
 * share would walk over the rings of all clients. */
static bool is_settled(const struct stream_pool *pool, const struct client_stream *stream)
{
    return stream->settled == pool->changes && is_of_right_kind(stream);
}

/* ---- rings that have left a CUstream ---- */

/* Returns whether no ring has work left on the CUstream. */
static bool prune_leavers(struct stream_pool *pool, struct pool_stream *stream,
                          const struct client *client)
{
    pool->leavers -= pool_stream_prune(stream, client);
    return stream->leavers == NULL;
}

/* Whether no ring is bound to it, and none has work left on it. */
static bool is_free(struct stream_pool *pool, struct pool_stream *stream)
{
    return stream->user_count == 0 && prune_leavers(pool, stream, NULL);
}

static void count_held(struct stream_pool *pool, struct client *client)
{
    client->queues.held =
        driver_queue_count_own(stream_pool_set(pool, client->shared.partition), client);
}

/* ---- making CUstreams ---- */

cuda_result stream_pool_add_partition(struct stream_pool *pool, struct partition *partition)
{
    if (!partition->green)
        return CUDA_OK;
    if (partition->queue_count) {
        partition->queues = malloc(sizeof *partition->queues);
        if (!partition->queues)
            return CUDA_ERR_OUT_OF_MEMORY;
        driver_queue_set_open(partition->queues, partition->queue_count);
    }
    pthread_mutex_lock(&pool->lock);
    driver_queue_take(stream_pool_set(pool, partition));
    pthread_mutex_unlock(&pool->lock);
    return CUDA_OK;
}

static uint32_t count_of_partition(const struct stream_pool *pool,
                                   const struct partition *partition)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        count += pool->streams[i]->partition == partition;
    return count;
}

/* The first CUstream of a partition is made before anybody can have work there. */
static cuda_result make_stream(struct stream_pool *pool, struct partition *partition,
                               int32_t priority, struct pool_stream **made)
{
    pthread_mutex_lock(&pool->lock);
    bool first = count_of_partition(pool, partition) == 0;
    pthread_mutex_unlock(&pool->lock);
    cuda_result result = pool_stream_make(made, pool->gpu, partition, priority);
    if (result != CUDA_OK || !first)
        return result;
    result = local_memory_extend(&pool->gpu->local, pool->gpu->cuda, (*made)->handle);
    if (result != CUDA_OK)
        pool_stream_destroy(*made, pool->gpu);
    return result;
}

static cuda_result add_stream(struct stream_pool *pool, struct partition *partition,
                              int32_t priority, struct pool_stream **made)
{
    cuda_result result = make_stream(pool, partition, priority, made);
    if (result != CUDA_OK)
        return result;
    pthread_mutex_lock(&pool->lock);
    struct driver_queue *queue = driver_queue_take(stream_pool_set(pool, partition));
    bool room = array_reserve(pool->streams, pool->room, (size_t)pool->count + 1) == 0;
    if (room) {
        driver_queue_join(queue, *made);
        pool->streams[pool->count++] = *made;
        pool->changes++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (room)
        return CUDA_OK;
    pool_stream_destroy(*made, pool->gpu);
    return CUDA_ERR_OUT_OF_MEMORY;
}

uint32_t stream_pool_one_of_each(struct stream_pool *pool, cuda_stream streams[], uint32_t room)
{
    uint32_t found = 0;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->count && found < room; i++) {
        uint32_t same = 0;
        while (pool->streams[same]->partition != pool->streams[i]->partition)
            same++;
        if (same == i)
            streams[found++] = pool->streams[i]->handle;
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

cuda_result stream_pool_prepare(struct stream_pool *pool, struct partition *partition,
                                int32_t priority, uint32_t count)
{
    struct pool_stream *made;
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&pool->lock);
    uint32_t there = stream_choice_count_fitting(pool, partition, priority);
    pthread_mutex_unlock(&pool->lock);
    for (; result == CUDA_OK && there < count; there++)
        result = add_stream(pool, partition, priority, &made);
    return result;
}

void stream_pool_reserve_queue(struct stream_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    driver_queue_reserve(driver_queue_take(&pool->queues));
    pool->reserved = true;
    pthread_mutex_unlock(&pool->lock);
}

void stream_pool_count_queues(struct stream_pool *pool, uint32_t count)
{
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->count; i++)
        driver_queue_leave(pool->streams[i]);
    driver_queue_set_open(&pool->queues, count);
    /* The one before that of the first CUstream. */
    if (pool->reserved)
        driver_queue_reserve(&pool->queues.queues[count - 1]);
    for (uint32_t i = 0; i < pool->count; i++)
        driver_queue_join(driver_queue_take(&pool->queues), pool->streams[i]);
    pool->changes++;
    pthread_mutex_unlock(&pool->lock);
}

/* A free CUstream that something else may take the place of. The last one of a partition stays: the
 * submitter may come to the partition at any time, and makes none. */
static struct pool_stream *take_victim(struct stream_pool *pool, const struct partition *partition,
                                       int32_t priority)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        struct pool_stream *candidate = pool->streams[i];
        if (!pool_stream_is_of(candidate, partition, priority) && is_free(pool, candidate) &&
            count_of_partition(pool, candidate->partition) > 1)
            return take_out(pool, i);
    }
    return NULL;
}

/* Returns false if there are too many CUstreams, and none can go. */
static bool make_room(struct stream_pool *pool, const struct stream_order *order)
{
    struct pool_stream *victim = NULL;
    pthread_mutex_lock(&pool->lock);
    bool room = pool->count < STREAM_POOL_MAX || count_of_partition(pool, order->partition) == 0;
    if (!room && order->destroys)
        victim = take_victim(pool, order->partition, order->priority);
    pthread_mutex_unlock(&pool->lock);
    if (victim)
        pool_stream_destroy(victim, pool->gpu);
    return room || victim;
}

void stream_pool_reap(struct stream_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    reap_idle(pool);
    pthread_mutex_unlock(&pool->lock);
}

cuda_result stream_pool_extend_once(struct stream_pool *pool, struct stream_order *order)
{
    struct pool_stream *made;
    if (!make_room(pool, order)) {
        order->count = 0;
        return CUDA_OK;
    }
    cuda_result result = add_stream(pool, order->partition, order->priority, &made);
    if (result != CUDA_OK)
        return result;
    pthread_mutex_lock(&pool->lock);
    order->count -=
        !atomic_load(&made->queue->home) && driver_queue_use(made->queue, NULL).others == 0;
    pthread_mutex_unlock(&pool->lock);
    if (++order->made == STREAM_POOL_TRIES)
        order->count = 0;
    return CUDA_OK;
}

cuda_result stream_pool_extend(struct stream_pool *pool, struct stream_order *order)
{
    cuda_result result = CUDA_OK;
    stream_pool_reap(pool);
    while (result == CUDA_OK && order->count)
        result = stream_pool_extend_once(pool, order);
    return result;
}

bool stream_pool_drop(struct stream_pool *pool, const struct partition *partition)
{
    struct pool_stream *gone;
    do {
        gone = NULL;
        pthread_mutex_lock(&pool->lock);
        for (uint32_t i = 0; i < pool->count && !gone; i++)
            if (pool->streams[i]->partition == partition && is_free(pool, pool->streams[i]))
                gone = take_out(pool, i);
        pthread_mutex_unlock(&pool->lock);
        if (gone)
            pool_stream_destroy(gone, pool->gpu);
    } while (gone);
    pthread_mutex_lock(&pool->lock);
    bool left = count_of_partition(pool, partition) > 0;
    /* A client that moved away keeps its home there until it binds a ring again, and the
     * partition's own queues go with it. */
    for (uint32_t i = 0; !left && partition->queues && i < partition->queues->count; i++) {
        struct client *client =
            (struct client *)(uintptr_t)atomic_load(&partition->queues->queues[i].home);
        if (client)
            stream_choice_leave_home(pool, client);
    }
    pthread_mutex_unlock(&pool->lock);
    return !left;
}

/* ---- the control thread ---- */

void stream_pool_join(struct stream_pool *pool, struct client *client)
{
    pthread_mutex_lock(&pool->lock);
    pool->clients += !client->queues.joined;
    client->queues.joined = true;
    pool->changes++;
    pthread_mutex_unlock(&pool->lock);
}

void stream_pool_forget(struct stream_pool *pool, struct client *client)
{
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->count; i++)
        prune_leavers(pool, pool->streams[i], client);
    stream_choice_leave_home(pool, client);
    pool->clients -= client->queues.joined;
    client->queues.joined = false;
    pool->changes++;
    pthread_mutex_unlock(&pool->lock);
}

bool stream_pool_take_wish(struct stream_pool *pool, struct stream_wish *wish)
{
    if (!atomic_exchange(&pool->wished, false))
        return false;
    pthread_mutex_lock(&pool->lock);
    *wish = pool->wish;
    pthread_mutex_unlock(&pool->lock);
    return wish->count > 0;
}

void stream_pool_grant(struct stream_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->wish.count = 0;
    pool->changes++; /* rings whose wish was not noted may wish now */
    pthread_mutex_unlock(&pool->lock);
}

bool stream_pool_has(struct stream_pool *pool, const struct partition *partition, int32_t priority)
{
    pthread_mutex_lock(&pool->lock);
    bool has = stream_choice_count_fitting(pool, partition, priority) > 0;
    pthread_mutex_unlock(&pool->lock);
    return has;
}

/* ---- binding rings: the submitter ---- */

/* Whether the ring would wait for another client's work that has not got on for long. Where every
 * client has a home nobody shares, so nothing is looked at. */
static bool would_stand(const struct stream_pool *pool, const struct client_stream *stream)
{
    return pool->homes < pool->clients &&
           driver_queue_stands(stream->bound->queue, stream->client, clock_now()) >
               STREAM_CHOICE_STANDS_NS;
}

/* Whether a ring that has nothing in flight may stay where it is. */
static bool may_stay(struct stream_pool *pool, const struct client_stream *stream)
{
    const struct client *client = stream->client;
    const struct driver_queue *queue = stream->bound->queue;
    if (would_stand(pool, stream))
        return false;
    if (is_settled(pool, stream))
        return true;
    if (!stream_pool_fits(stream))
        return false;
    if (queue == client->queues.home)
        return true;
    return driver_queue_use(queue, client).others == 0 &&
           client->queues.held <=
               stream_choice_queues_allowed(pool, stream_pool_set(pool, client->shared.partition));
}

cuda_result stream_pool_bind(struct stream_pool *pool, struct client_stream *stream)
{
    pthread_mutex_lock(&pool->lock);
    const struct pool_stream *from = stream->bound;
    if (from && !may_stay(pool, stream))
        unbind_ring(pool, stream);
    if (!stream->bound) {
        struct stream_choice choice = {.stream = stream, .now = clock_now()};
        struct pool_stream *chosen = choose_stream(pool, &choice);
        if (chosen) {
            bind_to(pool, stream, chosen);
            count_held(pool, stream->client);
        }
        pool->changes += chosen != from;
        note_choice(pool, stream, choice.best);
    }
    bool bound = stream->bound != NULL;
    pthread_mutex_unlock(&pool->lock);
    return bound ? CUDA_OK : CUDA_ERR_NOT_READY;
}

bool stream_pool_fits(const struct client_stream *stream)
{
    return is_of_right_kind(stream) &&
           !driver_queue_is_foreign(stream->bound->queue, stream->client);
}

uint64_t stream_pool_in_flight(struct stream_pool *pool, const struct client_stream *stream)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t in_flight = stream->bound
                             ? driver_queue_in_flight(stream->bound->queue, stream->client)
                             : client_stream_written(stream) - client_stream_reached(stream);
    pthread_mutex_unlock(&pool->lock);
    return in_flight;
}

bool stream_pool_is_idle(struct stream_pool *pool, const struct client_stream *stream)
{
    if (client_stream_in_flight(stream))
        return false;
    pthread_mutex_lock(&pool->lock);
    bool idle = driver_queue_is_idle(stream->bound->queue);
    pthread_mutex_unlock(&pool->lock);
    return idle;
}

uint32_t stream_pool_entries_free(struct stream_pool *pool, const struct client_stream *stream)
{
    struct driver_queue *queue = stream->bound->queue;
    /* Counted anew only when a quarter of them seems to be in use: most of those are done then. */
    if (queue->entries <= pool->entries_max / 4)
        return pool->entries_max - queue->entries;
    pthread_mutex_lock(&pool->lock);
    uint32_t used = driver_queue_count_entries(queue);
    pthread_mutex_unlock(&pool->lock);
    return (uint32_t)saturating_sub(pool->entries_max, used);
}

static void count_entries(struct client_stream *stream, struct driver_queue *queue, uint32_t count)
{
    stream_entries_add(&stream->entries, count, client_stream_written(stream));
    queue->entries += count;
}

void stream_pool_note_entries(struct client_stream *stream, uint32_t count)
{
    count_entries(stream, stream->bound->queue, count);
}

/* Has `to` wait for what is in `from`. */
static cuda_result order_streams(const struct stream_pool *pool, const struct pool_stream *from,
                                 const struct pool_stream *to, cuda_event event)
{
    cuda_result result = pool->gpu->cuda->cuEventRecord(event, from->handle);
    return result == CUDA_OK ? pool->gpu->cuda->cuStreamWaitEvent(to->handle, event, 0) : result;
}

/* Where a ring with work in flight may go. Its old work stands before its new work, so a wait
 * for it would hold up all others on the new queue, and they would carry that on when they move. So
 * only queues that no other client uses will do. NULL: it can't go anywhere before its work is
 * done. */
static struct pool_stream *choose_target(struct stream_pool *pool, struct stream_choice *choice)
{
    const struct client_stream *stream = choice->stream;
    struct pool_stream *from = stream->bound, *to = choose_stream(pool, choice);
    if (to && stream_choice_kind(choice, to) > STREAM_CHOICE_SHARED)
        return to;
    return from->partition == stream->client->shared.partition ? from : NULL;
}

/* Whether both queues have room for the order that stream_pool_move submits. */
static bool has_room_to_move(const struct stream_pool *pool, const struct pool_stream *from,
                             const struct pool_stream *to)
{
    uint32_t needed = from->queue == to->queue ? 2 : 1;
    return driver_queue_count_entries(from->queue) + needed <= pool->entries_max &&
           driver_queue_count_entries(to->queue) + needed <= pool->entries_max;
}

cuda_result stream_pool_move(struct stream_pool *pool, struct client_stream *stream,
                             cuda_event event)
{
    struct pool_leaver *leaver = malloc(sizeof *leaver);
    if (!leaver)
        return CUDA_ERR_OUT_OF_MEMORY;
    pthread_mutex_lock(&pool->lock);
    if (is_settled(pool, stream)) {
        pthread_mutex_unlock(&pool->lock);
        free(leaver);
        return CUDA_OK;
    }
    struct stream_choice choice = {.stream = stream, .now = clock_now()};
    struct pool_stream *from = stream->bound;
    /* Its work may end just now: then choosing lets it go, and must not destroy where it was. */
    from->user_count++;
    struct pool_stream *to = choose_target(pool, &choice);
    if (to && to != from && !has_room_to_move(pool, from, to))
        to = NULL;
    if (to)
        to->user_count++;
    pthread_mutex_unlock(&pool->lock);
    cuda_result result = !to          ? CUDA_ERR_NOT_READY
                         : to == from ? CUDA_OK
                                      : order_streams(pool, from, to, event);
    pthread_mutex_lock(&pool->lock);
    from->user_count--;
    if (to)
        to->user_count--;
    if (result == CUDA_OK && to != from) {
        prune_leavers(pool, from, NULL);
        count_entries(stream, from->queue, 1); /* what is waited for */
        *leaver = (struct pool_leaver){
            from->leavers, stream, client_stream_written(stream),
            stream_entries_left(&stream->entries, client_stream_reached(stream))};
        from->leavers = leaver;
        count_entries(stream, to->queue, 1); /* the wait */
        pool->leavers++;
        pool->changes++;
        leaver = NULL;
    }
    if (stream->bound && result == CUDA_OK)
        unbind_ring(pool, stream);
    if (!stream->bound)
        bind_to(pool, stream, result == CUDA_OK ? to : from);
    count_held(pool, stream->client);
    note_choice(pool, stream, choice.best && result == CUDA_OK);
    pthread_mutex_unlock(&pool->lock);
    free(leaver);
    return result;
}

void stream_pool_unbind(struct stream_pool *pool, struct client_stream *stream)
{
    pthread_mutex_lock(&pool->lock);
    if (stream->bound) {
        unbind_ring(pool, stream);
        pool->changes++;
    }
    pthread_mutex_unlock(&pool->lock);
}

uint32_t stream_pool_shared(struct stream_pool *pool, const struct client *client)
{
    uint32_t shared = 0;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->count; i++) {
        const struct pool_stream *at = pool->streams[i];
        uint32_t own = 0;
        for (const struct client_stream *user = at->users; user; user = user->next_user)
            own += user->client == client && client_stream_in_flight(user);
        if (own && driver_queue_busy(at->queue, client).others)
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
            busy = client_stream_in_flight(user);
        busy |= !prune_leavers(pool, candidate, NULL);
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
    cuda_result result = pool->gpu->cuda->cuStreamQuery(busy->handle);
    pthread_mutex_lock(&pool->lock);
    busy->user_count--;
    pthread_mutex_unlock(&pool->lock);
    return result;
}
