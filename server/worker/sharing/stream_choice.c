/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/stream_choice.h"

#include "common/clock.h"
#include "common/util.h"

/* ---- which queues a client has ---- */

static uint32_t left_of(uint32_t all, uint32_t taken)
{
    return (uint32_t)saturating_sub(all, taken);
}

void stream_choice_leave_home(struct stream_pool *pool, struct client *client)
{
    if (!client->queues.home)
        return;
    atomic_store(&client->queues.home->home, NULL);
    client->queues.home = NULL;
    pool->homes--;
    pool->changes++;
}

/* A home is of use only where the client's partition has a CUstream. */
static void find_home(struct stream_pool *pool, struct client *client)
{
    const struct partition *partition = client->shared.partition;
    if (client->queues.home && driver_queue_serves(client->queues.home, partition))
        return;
    stream_choice_leave_home(pool, client);
    client->queues.home =
        driver_queue_find_home(stream_pool_set(pool, partition), client, partition);
    if (!client->queues.home)
        return;
    atomic_store(&client->queues.home->home, client);
    pool->homes++;
    pool->changes++;
}

/* Queues that one client may have, its home included. Those without rings need no more than a
 * home. Of a partition's own queues one is kept: few clients have the same partition. */
uint32_t stream_choice_queues_allowed(const struct stream_pool *pool,
                                      const struct driver_queue_set *set)
{
    uint32_t active = max(pool->active, 1u);
    uint32_t kept = set == &pool->queues ? STREAM_POOL_SPARE + left_of(pool->clients, active) : 1;
    return max(left_of(set->count, kept) / active, 1u);
}

/* Whether the client may have so many queues more. */
static uint32_t queues_left(const struct stream_pool *pool, const struct driver_queue_set *set,
                            const struct client *client)
{
    uint32_t kept =
        set == &pool->queues ? STREAM_POOL_SPARE + left_of(pool->clients, pool->homes) : 1;
    return min(left_of(stream_choice_queues_allowed(pool, set), client->queues.held),
               left_of(driver_queue_count_free(set), kept));
}

/* ---- ranks ---- */

unsigned stream_choice_kind(const struct stream_choice *choice, const struct pool_stream *candidate)
{
    const struct client *client = choice->stream->client;
    const struct driver_queue *queue = candidate->queue;
    bool home = queue == client->queues.home;
    struct driver_queue_use use = driver_queue_use(queue, client);
    if (queue->reserved)
        return STREAM_CHOICE_WORKERS;
    if (driver_queue_is_foreign(queue, client) || (use.others && !home))
        return STREAM_CHOICE_SHARED;
    if (use.others && driver_queue_stands(queue, client, choice->now) > STREAM_CHOICE_STANDS_NS)
        return STREAM_CHOICE_SHARED;
    if (use.own)
        return STREAM_CHOICE_OWN_USED;
    if (home)
        return STREAM_CHOICE_OWN_IDLE;
    return choice->left ? STREAM_CHOICE_ANOTHER : STREAM_CHOICE_REFUSED;
}

enum { PROMPT_MOST = 15 };

/* The greater the sooner work on the queue may begin, as others' work there has got on. Never
 * 0, so that a queue of others comes before the worker's own. */
static uint64_t promptness(const struct stream_choice *choice, const struct driver_queue *queue)
{
    uint64_t prompt = PROMPT_MOST;
    uint64_t stands = driver_queue_stands(queue, choice->stream->client, choice->now);
    for (; stands > STREAM_CHOICE_STANDS_NS && prompt > 1; stands /= 2)
        prompt--;
    return prompt;
}

/* A client that shares with itself waits for nobody else, so that comes before all. A queue where
 * nobody's work stands still comes before the right priority, which comes before a queue to itself.
 * Of equals, the one that is used least; then the one whose queue others need least. */
static uint64_t rank_of(const struct stream_choice *choice, const struct pool_stream *candidate)
{
    const struct client_stream *stream = choice->stream;
    uint64_t kind = stream_choice_kind(choice, candidate);
    uint64_t alone = kind > STREAM_CHOICE_REFUSED, fits = candidate->priority == stream->priority;
    uint64_t prompt = kind == STREAM_CHOICE_SHARED    ? promptness(choice, candidate->queue)
                      : kind == STREAM_CHOICE_WORKERS ? 0
                                                      : PROMPT_MOST;
    struct driver_queue_use use = driver_queue_use(candidate->queue, stream->client);
    uint64_t unused = UINT16_MAX - min(use.own + use.others, (uint32_t)UINT16_MAX);
    return alone << 60 | prompt << 56 | fits << 55 | kind << 48 | unused << 32 |
           (UINT32_MAX - candidate->queue->stream_count);
}

static struct pool_stream *find_best(struct stream_pool *pool, const struct stream_choice *choice)
{
    const struct partition *partition = choice->stream->client->shared.partition;
    struct pool_stream *best = NULL;
    uint64_t best_rank = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->streams[i]->partition != partition)
            continue;
        uint64_t rank = rank_of(choice, pool->streams[i]);
        if (!best || rank > best_rank) {
            best = pool->streams[i];
            best_rank = rank;
        }
    }
    return best;
}

/* Under the lock. */
uint32_t stream_choice_count_fitting(const struct stream_pool *pool,
                                     const struct partition *partition, int32_t priority)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        count += pool_stream_is_of(pool->streams[i], partition, priority);
    return count;
}

/* Whether a new CUstream could do better than this one. */
bool stream_choice_could_be_better(struct stream_pool *pool, const struct stream_choice *choice,
                                   const struct pool_stream *found)
{
    const struct client_stream *stream = choice->stream;
    const struct partition *partition = stream->client->shared.partition;
    unsigned kind = stream_choice_kind(choice, found);
    if (kind <= STREAM_CHOICE_SHARED)
        return driver_queue_count_free(stream_pool_set(pool, partition)) > 0;
    if (found->priority != stream->priority &&
        stream_choice_count_fitting(pool, partition, stream->priority) == 0)
        return true;
    return choice->left && (kind == STREAM_CHOICE_OWN_USED || found->priority != stream->priority);
}

/* One wish is kept: a ring that was not served now wishes again when it is next bound. */
void stream_choice_wish(struct stream_pool *pool, const struct stream_choice *choice)
{
    if (pool->wish.count || pool->count >= STREAM_POOL_MAX)
        return;
    uint32_t count = max(choice->left, UINT32_C(1));
    pool->wish = (struct stream_wish){choice->stream->client->shared.partition->sm_groups,
                                      choice->stream->priority, count};
    atomic_store(&pool->wished, true);
}

struct pool_stream *stream_choice_look(struct stream_pool *pool, struct stream_choice *choice)
{
    struct client *client = choice->stream->client;
    struct driver_queue_set *set = stream_pool_set(pool, client->shared.partition);
    find_home(pool, client);
    client->queues.held = driver_queue_count_own(set, client);
    choice->left = queues_left(pool, set, client);
    return find_best(pool, choice);
}
