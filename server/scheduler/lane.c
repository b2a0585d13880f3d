/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/lane.h"

#include <string.h>

#include "common/util.h"
#include "server/scheduler/policy.h"

#define ALONE_BEYOND(lease) max((lease) / 10, UINT64_C(1000000))

void lane_queue(struct scheduler_lane *lane, struct scheduler_client *client)
{
    struct list_link *after = list_last(&lane->wants);
    while (after &&
           container_of(after, struct scheduler_client, wants_link)->ticket > client->ticket)
        after = list_previous(&lane->wants, after);
    if (after)
        list_insert_after(after, &client->wants_link);
    else
        list_prepend(&lane->wants, &client->wants_link);
    lane->wants_count++;
}

void lane_unqueue(struct scheduler_lane *lane, struct scheduler_client *client)
{
    list_remove(&client->wants_link);
    lane->wants_count--;
}

void lane_name(struct scheduler *scheduler, struct scheduler_client *client)
{
    if (client->granted)
        return;
    client->granted = true;
    queue_append(&scheduler->grants, &client->grant_link);
}

/* ---- charging ---- */

static void charge(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    uint64_t ns = now - client->charged_to;
    client->charged_to = now;
    client->charged_ns += ns;
    if (scheduler->settings.mode == PROTO_MODE_TURNS)
        return;
    policy_settle(&scheduler->plan, client, now);
    credit_charge(&client->cap, ns);
    if (client->on_extra)
        client->extra_ns += ns;
    else
        credit_charge(&client->request, ns);
}

void lane_settle_leftover(struct scheduler *scheduler, struct scheduler_client *client,
                          uint64_t now)
{
    charge(scheduler, client, now);
    client->leased = false;
    if (client->wants)
        client->waits_since = now;
}

/* ---- a lease ---- */

static bool choose(const struct scheduler *scheduler, struct scheduler_lane *lane, uint64_t now,
                   struct policy_choice *choice)
{
    switch (scheduler->settings.mode) {
    case PROTO_MODE_STRICT:
        policy_strict_choose(scheduler, lane, now, choice);
        break;
    case PROTO_MODE_FAIR:
        policy_fair_choose(scheduler, lane, now, choice);
        break;
    case PROTO_MODE_TURNS:
        policy_turns_choose(scheduler, lane, now, choice);
        break;
    case PROTO_MODE_CONCURRENT:
        *choice = (struct policy_choice){.again_at = SCHEDULER_NEVER};
        break;
    }
    lane->look_at = choice->client ? 0 : choice->again_at;
    return choice->client;
}

static void begin(struct scheduler *scheduler, struct scheduler_lane *lane,
                  const struct policy_choice *choice, uint64_t now)
{
    struct scheduler_client *client = choice->client;
    bool goes_on = lane->holder == client;
    lane->holder = client;
    lane->closing = false;
    lane->lease_ends = now + choice->length_ns;
    lane->idle_since = SCHEDULER_NEVER;
    client->on_extra = choice->extra;
    client->charged_to = client->spends = now;
    client->leases++;
    /* Behind the others is who was idle, or at its limit: that is not made up for. */
    if (choice->extra && lane->extra_ns < client->extra_ns)
        lane->extra_ns = client->extra_ns;
    else if (choice->extra)
        client->extra_ns = lane->extra_ns;
    if (scheduler->settings.mode == PROTO_MODE_TURNS)
        client->debt_ns -= scheduler->settings.quantum_ns - choice->length_ns;
    if (goes_on)
        return;
    client->leased = true;
    client->throttled_ns[SCHEDULER_HOLD_LEASE] += now - client->waits_since;
    lane_name(scheduler, client);
}

static bool is_over(const struct scheduler *scheduler, const struct scheduler_lane *lane,
                    uint64_t now)
{
    if (now >= lane->lease_ends)
        return true;
    return lane->idle_since != SCHEDULER_NEVER && now - lane->idle_since >= scheduler->idle_ns;
}

/* The lease is over. Chosen again, its client goes on at once; else it has to finish first. */
static void end(struct scheduler *scheduler, struct scheduler_lane *lane, uint64_t now)
{
    struct scheduler_client *client = lane->holder;
    struct policy_choice choice;
    charge(scheduler, client, now);
    if (client->wants) {
        lane_unqueue(lane, client);
        client->ticket = ++scheduler->tickets;
        lane_queue(lane, client);
        if (choose(scheduler, lane, now, &choice) && choice.client == client) {
            begin(scheduler, lane, &choice, now);
            return;
        }
    }
    lane->closing = true;
}

static void release(struct scheduler *scheduler, struct scheduler_lane *lane, uint64_t now)
{
    struct scheduler_client *client = lane->holder;
    charge(scheduler, client, now);
    if (now > lane->lease_ends && scheduler->settings.mode == PROTO_MODE_TURNS)
        client->debt_ns += now - lane->lease_ends;
    client->leased = false;
    client->waits_since = now;
    lane->holder = NULL;
    lane->closing = false;
    lane->look_at = 0;
}

void lane_advance(struct scheduler *scheduler, struct scheduler_lane *lane, uint64_t now)
{
    struct policy_choice choice;
    if (scheduler->settings.mode == PROTO_MODE_CONCURRENT)
        return;
    if (lane->holder && !lane->closing && is_over(scheduler, lane, now))
        end(scheduler, lane, now);
    if (lane->holder && lane->closing && lane->holder->in_flight == 0)
        release(scheduler, lane, now);
    if (lane->holder || lane->in_flight || lane->wants_count == 0 || now < lane->look_at)
        return;
    if (choose(scheduler, lane, now, &choice))
        begin(scheduler, lane, &choice, now);
}

uint64_t lane_next_event(const struct scheduler *scheduler, const struct scheduler_lane *lane)
{
    if (lane->holder) {
        if (lane->closing)
            return SCHEDULER_NEVER;
        if (lane->idle_since == SCHEDULER_NEVER)
            return lane->lease_ends;
        return min(lane->idle_since + scheduler->idle_ns, lane->lease_ends);
    }
    return lane->wants_count && !lane->in_flight ? lane->look_at : SCHEDULER_NEVER;
}

uint32_t lane_room(const struct scheduler *scheduler, const struct scheduler_lane *lane,
                   uint64_t now)
{
    const struct scheduler_client *client = lane->holder;
    if (lane->closing || now >= lane->lease_ends)
        return 0;
    uint32_t window = scheduler_window(&scheduler->settings, client);
    if (client->in_flight >= window)
        return 0;
    uint32_t room = window - client->in_flight;
    /* Alone, the client goes on after this lease: a little queued beyond its end keeps the device
     * busy, and who arrives now waits for no more than that. */
    bool awaited = lane->wants_count > 1 || scheduler->settings.mode == PROTO_MODE_STRICT;
    uint64_t ends = lane->lease_ends + (awaited ? 0 : ALONE_BEYOND(scheduler->plan.lease_ns));
    /* Of a duration that nobody knows, as few as keep the device busy, whatever its queues. */
    uint32_t least = SCHEDULER_WINDOW_LEAST;
    if (client->peak_ns == 0)
        return (uint32_t)saturating_sub(least, client->in_flight);
    uint64_t left = (ends - now + client->peak_ns - 1) / client->peak_ns;
    if (left <= client->in_flight)
        return client->in_flight ? 0 : 1;
    return (uint32_t)min(left - client->in_flight, (uint64_t)room);
}

/* ---- which lanes there are ---- */

/* What the lanes should be: sets of SM groups that don't overlap, one a lane. */
static uint32_t find_lanes(const struct scheduler *scheduler, struct share_set *sets)
{
    uint32_t count = 0;
    if (scheduler->settings.mode == PROTO_MODE_TURNS && !list_is_empty(&scheduler->clients)) {
        share_set_all(&sets[0]);
        return 1;
    }
    const struct scheduler_client *client;
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        struct share_set joined = client->sm_groups;
        for (uint32_t i = 0; i < count;) {
            if (share_set_overlap(&sets[i], &client->sm_groups)) {
                share_set_join(&joined, &sets[i]);
                sets[i] = sets[--count];
            } else {
                i++;
            }
        }
        sets[count++] = joined;
    }
    return count;
}

#define NOWHERE UINT32_MAX

/* Which set each lane's clients are in; false if a lane would be split or two joined. */
static bool match_lanes(const struct scheduler *scheduler, const struct share_set *sets,
                        uint32_t count, uint32_t *set_of)
{
    uint32_t lane_of_set[SCHEDULER_LANES];
    memset(set_of, 0xff, SCHEDULER_LANES * sizeof *set_of);
    memset(lane_of_set, 0xff, sizeof lane_of_set);
    const struct scheduler_client *client;
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        if (!client->lane)
            continue;
        uint32_t lane = (uint32_t)(client->lane - scheduler->lanes), set = 0;
        while (set < count - 1 && !share_set_overlap(&sets[set], &client->sm_groups))
            set++;
        if ((set_of[lane] != NOWHERE && set_of[lane] != set) ||
            (lane_of_set[set] != NOWHERE && lane_of_set[set] != lane))
            return false;
        set_of[lane] = set;
        lane_of_set[set] = lane;
    }
    return true;
}

static void clear_lane(struct scheduler_lane *lane, const struct share_set *sm_groups)
{
    *lane = (struct scheduler_lane){.sm_groups = *sm_groups, .idle_since = SCHEDULER_NEVER};
    list_init(&lane->wants);
}

/* Lanes keep their places and leases; sets without one get one of those that have no client, or
 * a new one. There are never more sets than places, for each has an SM group of its own. */
static void keep_lanes(struct scheduler *scheduler, const struct share_set *sets, uint32_t count,
                       const uint32_t *set_of)
{
    static const struct share_set nothing;
    bool placed[SCHEDULER_LANES] = {false};
    for (uint32_t i = 0; i < scheduler->lane_count; i++) {
        if (set_of[i] == NOWHERE) {
            clear_lane(&scheduler->lanes[i], &nothing);
        } else {
            scheduler->lanes[i].sm_groups = sets[set_of[i]];
            placed[set_of[i]] = true;
        }
    }
    for (uint32_t set = 0, at = 0; set < count; set++) {
        if (placed[set])
            continue;
        while (at < scheduler->lane_count && !share_set_empty(&scheduler->lanes[at].sm_groups))
            at++;
        if (at == scheduler->lane_count)
            scheduler->lane_count++;
        clear_lane(&scheduler->lanes[at], &sets[set]);
    }
}

static struct scheduler_lane *lane_of(struct scheduler *scheduler,
                                      const struct scheduler_client *client)
{
    for (uint32_t i = 0; i < scheduler->lane_count; i++)
        if (share_set_overlap(&scheduler->lanes[i].sm_groups, &client->sm_groups))
            return &scheduler->lanes[i];
    return &scheduler->lanes[0];
}

/* Takes the client out of its lane for good. Idle time is a sum of the lane's, so only what the
 * client had more of it than others goes with it. */
static void leave(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    struct scheduler_lane *lane = client->lane;
    if (!lane)
        return;
    bool counts = scheduler->settings.mode != PROTO_MODE_CONCURRENT;
    if (client->leased && (client->in_flight == 0 || !counts))
        lane_settle_leftover(scheduler, client, now);
    client->extra_ns = saturating_sub(client->extra_ns, lane->extra_ns);
    list_remove(&client->wants_link);
    client->lane = NULL;
}

static void join(struct scheduler *scheduler, struct scheduler_client *client)
{
    struct scheduler_lane *lane = client->lane = lane_of(scheduler, client);
    if (client->extra_ns < lane->extra_ns)
        client->extra_ns = lane->extra_ns;
    lane->in_flight += client->in_flight;
    if (client->wants)
        lane_queue(lane, client);
}

void lane_regroup(struct scheduler *scheduler, bool all, uint64_t now)
{
    struct share_set sets[SCHEDULER_LANES];
    uint32_t set_of[SCHEDULER_LANES];
    uint32_t count = find_lanes(scheduler, sets);
    struct scheduler_client *client;
    if (!all && match_lanes(scheduler, sets, count, set_of)) {
        keep_lanes(scheduler, sets, count, set_of);
    } else {
        LIST_FOR_EACH (client, &scheduler->clients, link)
            leave(scheduler, client, now);
        scheduler->lane_count = count;
        for (uint32_t i = 0; i < count; i++)
            clear_lane(&scheduler->lanes[i], &sets[i]);
    }
    LIST_FOR_EACH (client, &scheduler->clients, link)
        if (!client->lane)
            join(scheduler, client);
    for (uint32_t i = 0; i < scheduler->lane_count; i++)
        lane_advance(scheduler, &scheduler->lanes[i], now);
}

void lane_sum(const struct scheduler *scheduler, const struct scheduler_client *client,
              const struct share_set *sm_groups, struct lane_sum *sum)
{
    struct share_set joined = *sm_groups, before;
    const struct scheduler_client *other;
    do {
        before = joined;
        LIST_FOR_EACH (other, &scheduler->clients, link)
            if (other != client && share_set_overlap(&joined, &other->sm_groups))
                share_set_join(&joined, &other->sm_groups);
    } while (memcmp(&before, &joined, sizeof joined) != 0);
    *sum = (struct lane_sum){0};
    LIST_FOR_EACH (other, &scheduler->clients, link) {
        if (other == client || !other->limits.request ||
            !share_set_overlap(&joined, &other->sm_groups))
            continue;
        if (sum->clients < 4)
            sum->some[sum->clients] = other->limits.request;
        sum->clients++;
        sum->requests += other->limits.request;
    }
}
