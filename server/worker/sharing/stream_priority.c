/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/stream_priority.h"

#include "common/util.h"
#include "server/worker/client/bits.h"
#include "server/worker/worker.h"

struct levels {
    uint64_t used[SCHEDULER_LEVELS / 64];
    uint32_t count;
};

static void find_levels(const struct worker *worker, struct levels *levels)
{
    *levels = (struct levels){.used = {1}};
    for (uint32_t i = 0; i < worker->client_count; i++)
        bits_set(levels->used, worker->clients[i]->control.allowance.priority);
    for (uint32_t i = 0; i < SCHEDULER_LEVELS / 64; i++)
        levels->count += (uint32_t)__builtin_popcountll(levels->used[i]);
}

static uint32_t rank_of(const struct levels *levels, uint32_t level)
{
    uint32_t rank = 0;
    for (uint32_t at = bits_next(levels->used, 0, level); at < level;
         at = bits_next(levels->used, at + 1, level))
        rank++;
    return rank;
}

void stream_priority_assign(struct worker *worker)
{
    int32_t greatest = worker->gpu.info.priority_greatest;
    int32_t least = worker->gpu.info.priority_least;
    struct levels levels;
    find_levels(worker, &levels);
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        uint32_t rank = rank_of(&levels, client->control.allowance.priority);
        int32_t first = scheduler_stream_priority(rank, levels.count, greatest, least),
                last = least;
        if (rank + 1 < levels.count)
            last = scheduler_stream_priority(rank + 1, levels.count, greatest, least) - 1;
        client_lock(client);
        client_stream_set_range(client, first, max(last, first));
        pthread_mutex_unlock(&client->lock);
    }
}
