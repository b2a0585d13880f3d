/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/balance.h"

#include "common/list.h"
#include "common/util.h"
#include "server/scheduler/lease_group.h"
#include "server/scheduler/level.h"

/* Accounts of a lease group. */
struct crowd {
    const struct scheduler_account *first; /* one of them */
    bool several;
    uint64_t least; /* time of the account that had least */
};

static bool is_there(const struct scheduler_account *account, uint64_t now)
{
    return account->busy_at && now - account->busy_at < BALANCE_PAUSE_NS;
}

static uint64_t fill_of(const struct scheduler_client *client)
{
    uint64_t width = client->width ? client->width : SCHEDULER_WIDTH;
    return min(width * max(client->rings, 1u), (uint64_t)SCHEDULER_WIDTH);
}

/* An account that comes back begins where the others are. */
static void meet_active(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    uint64_t least = client->lease_group->extra_ns;
    if (!is_there(client->accounts.of[0], now) && client->account_extra_ns < least) {
        client->account_extra_ns = least;
        lease_group_tell_siblings(scheduler, client);
    }
}

static void join_crowd(struct crowd *crowd, const struct scheduler_client *client)
{
    const struct scheduler_account *account = client->accounts.of[0];
    crowd->several |= crowd->first && crowd->first != account;
    crowd->least =
        crowd->first ? min(crowd->least, client->account_extra_ns) : client->account_extra_ns;
    crowd->first = account;
}

/* Until it is level again, so that a client that was held is not let go for one command at a time.
 */
static bool is_ahead_of(const struct crowd *crowd, const struct scheduler_client *client, bool was)
{
    uint64_t slack = was ? 0 : BALANCE_AHEAD_NS;
    return crowd->several && client->account_extra_ns > crowd->least + slack;
}

/* The clients of one level of priority in a lease group: a more urgent client is not held for a
 * less urgent one, and that one waits for room by itself. */
static void look_at_level(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                          uint32_t level, uint64_t now)
{
    struct crowd there = {.first = NULL}, busy = {.first = NULL};
    struct scheduler_client *client;
    uint64_t fill = 0;
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        if (client->lease_group != lease_group || client->limits.level != level ||
            !is_there(client->accounts.of[0], now))
            continue;
        join_crowd(&there, client);
        if (!level_has_work(client))
            continue;
        join_crowd(&busy, client);
        fill += fill_of(client);
    }
    bool crowded = busy.several && fill > SCHEDULER_WIDTH;
    lease_group->extra_ns = max(lease_group->extra_ns, there.least);
    lease_group->crowded |= crowded;
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        if (client->lease_group != lease_group || client->limits.level != level)
            continue;
        client->ahead = crowded && is_ahead_of(&busy, client, client->ahead);
        /* Its commands in flight would be in the way of an account that comes back in a moment. */
        client->guest = is_ahead_of(&there, client, client->guest);
    }
}

static void look_at_group(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                          uint64_t now)
{
    lease_group->crowded = false;
    for (uint32_t level = scheduler->first_level; level < SCHEDULER_LEVELS; level++)
        if (scheduler->level_clients[level])
            look_at_level(scheduler, lease_group, level, now);
}

void balance_charge(struct scheduler *scheduler, struct scheduler_client *client, uint64_t ns)
{
    if (!client->lease_group->crowded)
        return;
    client->account_extra_ns += ns;
    lease_group_tell_siblings(scheduler, client);
}

void balance_look(struct scheduler *scheduler, uint64_t now)
{
    struct scheduler_client *client;
    LIST_FOR_EACH (client, &scheduler->clients, link)
        if (level_has_work(client))
            meet_active(scheduler, client, now);
    LIST_FOR_EACH (client, &scheduler->clients, link)
        if (level_has_work(client))
            client->accounts.of[0]->busy_at = now;
    for (uint32_t i = 0; i < scheduler->lease_group_count; i++)
        look_at_group(scheduler, &scheduler->lease_groups[i], now);
}
