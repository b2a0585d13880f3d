/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/level.h"

void level_begin(struct scheduler *scheduler, uint32_t level)
{
    scheduler->level_busy[level]++;
    scheduler->about[level / 64] |= UINT64_C(1) << (level % 64);
}

void level_end(struct scheduler *scheduler, uint32_t level, uint64_t now)
{
    /* Clients that were held for one that has no work any more need not wait for a report. */
    scheduler->look_at_balance |= !list_is_empty(&scheduler->ahead);
    scheduler->level_busy[level]--;
    scheduler->level_seen[level] = now;
}

bool level_has_work(const struct scheduler_client *client)
{
    return client->wants || client->in_flight;
}

static void find_first_level(struct scheduler *scheduler)
{
    scheduler->first_level = 0;
    while (scheduler->first_level < SCHEDULER_LEVELS &&
           scheduler->level_clients[scheduler->first_level] == 0)
        scheduler->first_level++;
}

void level_join(struct scheduler *scheduler, struct scheduler_client *client)
{
    uint32_t level = client->limits.level;
    scheduler->level_clients[level]++;
    scheduler->level_in_flight[level] += client->in_flight;
    if (level_has_work(client))
        level_begin(scheduler, level);
    find_first_level(scheduler);
}

void level_leave(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    uint32_t level = client->limits.level;
    scheduler->level_clients[level]--;
    scheduler->level_in_flight[level] -= client->in_flight;
    if (level_has_work(client))
        level_end(scheduler, level, now);
    find_first_level(scheduler);
}

uint64_t level_next_event(const struct scheduler *scheduler)
{
    const struct scheduler_client *first =
        LIST_FIRST(&scheduler->lower, struct scheduler_client, held_link);
    if (!first)
        return SCHEDULER_NEVER;
    for (uint32_t level = 0; level < first->limits.level; level++) {
        if (!(scheduler->about[level / 64] >> (level % 64) & 1))
            continue;
        if (scheduler->level_busy[level])
            return SCHEDULER_NEVER;
        return scheduler->level_seen[level] + scheduler->schedule.linger_ns;
    }
    return 0;
}
