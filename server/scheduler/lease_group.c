/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/lease_group.h"

#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "server/scheduler/policy.h"

/* How long a client that arrives meanwhile may have to wait for one that was alone. A tenth of a
 * lease is too short to be noticed. At least 1 ms, so that a short lease still covers the time
 * between two submissions. */
#define ALONE_BEYOND(lease) max((lease) / 10, UNITS_MS)
/* A limit has room for two leases beyond it in ten plans. policy.c takes the rest of these; this
 * part is for commands that end late beside one kernel. */
#define LATE_OF_LEASE(ns) ((ns) / 4)
#define PROMISE_PLANS     10

void lease_group_queue(struct scheduler_lease_group *lease_group, struct scheduler_client *client)
{
    struct list_link *after = list_last(&lease_group->wants);
    while (after &&
           container_of(after, struct scheduler_client, wants_link)->ticket > client->ticket)
        after = list_previous(&lease_group->wants, after);
    if (after)
        list_insert_after(after, &client->wants_link);
    else
        list_prepend(&lease_group->wants, &client->wants_link);
    lease_group->wants_count++;
}

void lease_group_unqueue(struct scheduler_lease_group *lease_group, struct scheduler_client *client)
{
    list_remove(&client->wants_link);
    lease_group->wants_count--;
}

void lease_group_name(struct scheduler *scheduler, struct scheduler_client *client)
{
    if (client->granted)
        return;
    client->granted = true;
    queue_append(&scheduler->grants, &client->grant_link);
}

/* ---- charging ---- */

void lease_group_tell_siblings(struct scheduler *scheduler, const struct scheduler_client *client)
{
    const struct scheduler_account *account = client->accounts.of[0];
    struct scheduler_client *other;
    if (account->clients < 2)
        return;
    LIST_FOR_EACH (other, &scheduler->clients, link)
        if (other->accounts.of[0] == account && other->lease_group == client->lease_group) {
            other->account_extra_ns = client->account_extra_ns;
            other->account_floor_ns = client->account_floor_ns;
        }
}

static bool is_of_account(const struct scheduler_client *client)
{
    return client->on_extra || client->pays != &client->request;
}

void lease_group_charge(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    uint64_t ns = now - client->charged_to;
    client->charged_to = now;
    client->charged_ns += ns;
    if (scheduler->schedule.mode == PROTO_MODE_TURNS)
        return;
    policy_settle(&scheduler->plan, client, now);
    plan_credit_charge(&client->cap, ns);
    for (uint32_t i = 0; i < client->accounts.count; i++)
        plan_credit_charge(&client->accounts.of[i]->cap, ns);
    if (client->on_extra)
        client->account_extra_ns += ns;
    else
        plan_credit_charge(&client->pays->credit, ns);
    if (is_of_account(client)) {
        client->extra_ns += ns;
        lease_group_tell_siblings(scheduler, client);
    }
}

static void set_leased(struct scheduler *scheduler, struct scheduler_client *client, bool leased,
                       uint64_t now)
{
    client->leased = leased;
    account_note(&scheduler->plan, client, &scheduler->tickets, now);
}

void lease_group_settle_leftover(struct scheduler *scheduler, struct scheduler_client *client,
                                 uint64_t now)
{
    lease_group_charge(scheduler, client, now);
    set_leased(scheduler, client, false, now);
    if (client->wants)
        client->held_since = now;
}

/* ---- a lease ---- */

static bool choose_holder(const struct scheduler *scheduler,
                          struct scheduler_lease_group *lease_group, uint64_t now,
                          struct policy_choice *choice)
{
    switch (scheduler->schedule.mode) {
    case PROTO_MODE_STRICT:
        policy_strict_choose(scheduler, lease_group, now, choice);
        break;
    case PROTO_MODE_FAIR:
        policy_fair_choose(scheduler, lease_group, now, choice);
        break;
    case PROTO_MODE_TURNS:
        policy_turns_choose(scheduler, lease_group, now, choice);
        break;
    case PROTO_MODE_CONCURRENT:
        *choice = (struct policy_choice){.again_at = SCHEDULER_NEVER};
        break;
    }
    lease_group->look_at = choice->client ? 0 : choice->again_at;
    return choice->client;
}

/* An account or a client with a smaller sum was idle, or was at its limit. It gets no time later
 * for that. */
static void raise_sums(struct scheduler *scheduler, struct scheduler_client *client)
{
    struct scheduler_lease_group *lease_group = client->lease_group;
    if (client->on_extra)
        client->account_extra_ns = lease_group->extra_ns =
            max(client->account_extra_ns, lease_group->extra_ns);
    if (is_of_account(client)) {
        client->extra_ns = client->account_floor_ns =
            max(client->extra_ns, client->account_floor_ns);
        lease_group_tell_siblings(scheduler, client);
    }
}

/* The turn is shorter by a part of the last one's overrun, which is paid back with that. */
static void begin_turn(const struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                       uint64_t length)
{
    struct scheduler_account *account = lease_group->holder->accounts.of[0];
    account->debt_ns -= scheduler->schedule.quantum_ns - length;
    lease_group->turn =
        (struct scheduler_turn){.account = account, .ends = lease_group->lease_ends};
}

static void forget_pair(const struct plan *plan, struct scheduler_pair *pair, uint64_t now)
{
    if (now - pair->begun_at < PROMISE_PLANS * plan->length_ns)
        return;
    *pair = (struct scheduler_pair){
        .last_ns = pair->last_ns, .before_ns = pair->lately_ns, .begun_at = now};
}

static void begin_lease(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                        const struct policy_choice *choice, uint64_t now)
{
    struct scheduler_client *client = choice->client;
    bool goes_on = lease_group->holder == client;
    lease_group->holder = client;
    lease_group->closing = false;
    lease_group->lease_ends = now + choice->length_ns;
    lease_group->idle_since = SCHEDULER_NEVER;
    client->on_extra = choice->extra;
    client->guest = choice->guest;
    client->pays = choice->extra ? NULL : account_claim(client);
    if (!client->pays)
        client->pays = &client->request; /* in turns, where nothing is paid */
    client->charged_to = client->spends = now;
    client->leases++;
    forget_pair(&scheduler->plan, &client->pair, now);
    if (!goes_on)
        client->tested = 0;
    raise_sums(scheduler, client);
    if (scheduler->schedule.mode == PROTO_MODE_TURNS && !choice->guest && !choice->goes_on)
        begin_turn(scheduler, lease_group, choice->length_ns);
    if (goes_on)
        return;
    set_leased(scheduler, client, true, now);
    client->throttled_ns[SCHEDULER_HOLD_LEASE] += now - client->held_since;
    lease_group_name(scheduler, client);
}

static bool is_over(const struct scheduler *scheduler,
                    const struct scheduler_lease_group *lease_group, uint64_t now)
{
    if (now >= lease_group->lease_ends)
        return true;
    return lease_group->idle_since != SCHEDULER_NEVER &&
           now - lease_group->idle_since >= scheduler->idle_ns;
}

/* A new ticket puts the client behind all others with work, and its account, whose other clients
 * may have work where this one has not. */
static void go_behind(struct scheduler *scheduler, struct scheduler_client *client)
{
    uint64_t ticket = ++scheduler->tickets;
    client->accounts.of[0]->ticket = ticket;
    if (!client->wants)
        return;
    lease_group_unqueue(client->lease_group, client);
    client->ticket = ticket;
    lease_group_queue(client->lease_group, client);
}

/* Ends the lease. If its client is chosen again, it goes on at once; otherwise its work in
 * flight has to finish first. */
static void end_lease(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                      uint64_t now)
{
    struct scheduler_client *client = lease_group->holder;
    struct policy_choice choice;
    lease_group_charge(scheduler, client, now);
    bool guest = client->guest && scheduler->schedule.mode == PROTO_MODE_TURNS;
    if (!guest && now >= lease_group->lease_ends)
        go_behind(scheduler, client);
    if (client->wants && choose_holder(scheduler, lease_group, now, &choice) &&
        choice.client == client) {
        begin_lease(scheduler, lease_group, &choice, now);
        return;
    }
    lease_group->closing = true;
}

static void release_lease(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                          uint64_t now)
{
    struct scheduler_client *client = lease_group->holder;
    lease_group_charge(scheduler, client, now);
    if (now > lease_group->lease_ends && scheduler->schedule.mode == PROTO_MODE_TURNS)
        client->accounts.of[0]->debt_ns += now - lease_group->lease_ends;
    if (!client->guest)
        lease_group->turn.idle_since = min(now, lease_group->idle_since);
    client->held_since = now;
    set_leased(scheduler, client, false, now);
    lease_group->holder = NULL;
    lease_group->closing = false;
    lease_group->look_at = 0;
}

void lease_group_pause_all(struct scheduler *scheduler, uint64_t now)
{
    if (scheduler->paused)
        return;
    scheduler->paused = true;
    for (uint32_t i = 0; i < scheduler->lease_group_count; i++) {
        struct scheduler_lease_group *lease_group = &scheduler->lease_groups[i];
        lease_group->drained_at =
            lease_group->holder && lease_group->holder->in_flight == 0 ? now : SCHEDULER_NEVER;
    }
}

/* Other lease groups may have work: then this is no moment in which nothing runs. */
static void stop_between(struct scheduler *scheduler, uint64_t now)
{
    if (!scheduler->stops_between || scheduler->paused || scheduler->total_in_flight)
        return;
    lease_group_pause_all(scheduler, now);
    scheduler->between = true;
}

void lease_group_advance(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                         uint64_t now)
{
    struct policy_choice choice;
    if (scheduler->schedule.mode == PROTO_MODE_CONCURRENT)
        return;
    if (lease_group->holder && !lease_group->closing && !scheduler->paused &&
        is_over(scheduler, lease_group, now))
        end_lease(scheduler, lease_group, now);
    if (lease_group->holder && lease_group->closing && lease_group->holder->in_flight == 0) {
        release_lease(scheduler, lease_group, now);
        stop_between(scheduler, now);
    }
    /* Commands in flight may be those of a client that had a lease before lease groups changed. */
    if (lease_group->holder || lease_group->in_flight || lease_group->wants_count == 0 ||
        scheduler->paused || now < lease_group->look_at)
        return;
    if (choose_holder(scheduler, lease_group, now, &choice))
        begin_lease(scheduler, lease_group, &choice, now);
}

void lease_group_resume(struct scheduler *scheduler, struct scheduler_lease_group *lease_group,
                        uint64_t now)
{
    struct scheduler_client *client = lease_group->holder;
    if (client && lease_group->drained_at < now) {
        uint64_t lost = now - lease_group->drained_at;
        client->charged_to += lost;
        lease_group->lease_ends += lost;
        lease_group->turn.ends += lost;
        if (lease_group->idle_since != SCHEDULER_NEVER)
            lease_group->idle_since = now;
    }
    lease_group->drained_at = SCHEDULER_NEVER;
    lease_group_advance(scheduler, lease_group, now);
}

uint64_t lease_group_next_event(const struct scheduler *scheduler,
                                const struct scheduler_lease_group *lease_group)
{
    if (lease_group->holder) {
        if (lease_group->closing)
            return SCHEDULER_NEVER;
        if (lease_group->idle_since == SCHEDULER_NEVER)
            return lease_group->lease_ends;
        return min(lease_group->idle_since + scheduler->idle_ns, lease_group->lease_ends);
    }
    return lease_group->wants_count && !lease_group->in_flight ? lease_group->look_at
                                                               : SCHEDULER_NEVER;
}

/* Commands of an earlier lease say nothing of those of this one: 39 kernels of 78 ms went into a
 * lease of 50 ms, after others of 1 us. And few say little: 26 of up to 95 ms did, behind one
 * of 1.4 ms. So a lease begins with as few as keep the device busy, whatever the client's number of
 * queues, and each of the first ones that is done makes room for one more.
 *
 * Not all of them do: with kernels of 100 us in leases of 5 ms 4.6 % of the device's time was lost
 * then, where these few lose 2.6 %.
 *
 * Where the client's commands have been long, one keeps the device busy: with two of 374 ms each
 * lease of 250 ms ended half a second late, and one of 400,000 mixes was beyond the promise. */
static uint64_t tested_room(const struct scheduler *scheduler,
                            const struct scheduler_client *client)
{
    if (client->peak_ns && client->tested >= SCHEDULER_TESTED_ENOUGH)
        return UINT64_MAX;
    const uint64_t limit_ns = scheduler->schedule.in_flight_limit_ns;
    if (client->tested == 0 && limit_ns && client->mean_ns > limit_ns)
        return 1;
    return SCHEDULER_IN_FLIGHT_MIN + (client->peak_ns ? client->tested : 0);
}

static bool is_limited(const struct scheduler_client *client)
{
    bool limited = client->cap.rate != PLAN_WHOLE;
    for (uint32_t i = 0; i < client->accounts.count; i++)
        limited |= client->accounts.of[i]->cap.rate != PLAN_WHOLE;
    return limited;
}

/* The peak fades within some dozen commands, because it is to tell what the next ones are like. It
 * can't where most are short: behind 90 of 1 ms came four of 43 ms, which were all in flight when a
 * lease of 14 ms ended. So all that are in flight but one may be as long as two that came together
 * in the last ten plans, and end no later than a limit has room for.
 *
 * A long one that comes alone is no reason for few: with one of 400 ms among kernels of 10 us the
 * device would idle for four tenths of the time. */
static uint64_t paired_room(const struct scheduler *scheduler,
                            const struct scheduler_client *client, uint64_t left)
{
    uint64_t pair = max(client->pair.lately_ns, client->pair.before_ns);
    if (pair == 0 || scheduler->schedule.mode == PROTO_MODE_TURNS)
        return UINT64_MAX;
    return 1 + (left + LATE_OF_LEASE(scheduler->plan.lease_ns)) / pair;
}

uint32_t lease_group_room(const struct scheduler *scheduler,
                          const struct scheduler_lease_group *lease_group, uint64_t now)
{
    const struct scheduler_client *client = lease_group->holder;
    if (lease_group->closing || now >= lease_group->lease_ends)
        return 0;
    bool alone = lease_group->wants_count <= 1 && scheduler->schedule.mode != PROTO_MODE_STRICT;
    uint64_t in_flight_limit =
        min((uint64_t)policy_in_flight_limit(&scheduler->schedule, client, alone),
            tested_room(scheduler, client));
    if (!alone || is_limited(client))
        in_flight_limit =
            min(in_flight_limit, paired_room(scheduler, client, lease_group->lease_ends - now));
    if (client->in_flight >= in_flight_limit)
        return 0;
    uint64_t room = in_flight_limit - client->in_flight;
    if (client->peak_ns == 0 || client->tested == 0)
        return (uint32_t)room;
    /* A client that is alone goes on after this lease. Queuing a little beyond the lease's end
     * keeps the device busy, and a client that arrives now waits no longer than that. */
    uint64_t ends = lease_group->lease_ends + (alone ? ALONE_BEYOND(scheduler->plan.lease_ns) : 0);
    /* Rounded up: a command counts if it begins before the end, so a client with none in flight
     * may always begin one. */
    uint64_t left = (ends - now + client->peak_ns - 1) / client->peak_ns;
    if (left <= client->in_flight)
        /* A client whose commands are longer than the rest of its lease may still run one. */
        return client->in_flight ? 0 : 1;
    return (uint32_t)min(left - client->in_flight, room);
}

void lease_group_forget(struct scheduler *scheduler, const struct scheduler_account *account)
{
    for (uint32_t i = 0; account->clients == 0 && i < scheduler->lease_group_count; i++)
        if (scheduler->lease_groups[i].turn.account == account)
            scheduler->lease_groups[i].turn.account = NULL;
}

/* ---- which lease groups there are ---- */

/* Computes the lease groups: sets of SM groups that don't overlap, one for each lease group. */
static uint32_t find_lease_groups(const struct scheduler *scheduler, struct sm_group_set *sets)
{
    uint32_t count = 0;
    /* A turn is one of the whole GPU, so all clients form one lease group. */
    if (scheduler->schedule.mode == PROTO_MODE_TURNS && !list_is_empty(&scheduler->clients)) {
        sm_group_set_all(&sets[0]);
        return 1;
    }
    const struct scheduler_client *client;
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        struct sm_group_set joined = client->sm_groups;
        for (uint32_t i = 0; i < count;) {
            if (sm_group_set_overlaps(&sets[i], &client->sm_groups)) {
                sm_group_set_join(&joined, &sets[i]);
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

/* Finds the new set of each present lease group. Returns false if a lease group would be split
 * or two would be joined. */
static bool match_lease_groups(const struct scheduler *scheduler, const struct sm_group_set *sets,
                               uint32_t count, uint32_t *set_of)
{
    uint32_t lease_group_of_set[SCHEDULER_LEASE_GROUPS];
    memset(set_of, 0xff, SCHEDULER_LEASE_GROUPS * sizeof *set_of);
    memset(lease_group_of_set, 0xff, sizeof lease_group_of_set);
    const struct scheduler_client *client;
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        if (!client->lease_group)
            continue;
        uint32_t lease_group = (uint32_t)(client->lease_group - scheduler->lease_groups), set = 0;
        while (set < count - 1 && !sm_group_set_overlaps(&sets[set], &client->sm_groups))
            set++;
        if ((set_of[lease_group] != NOWHERE && set_of[lease_group] != set) ||
            (lease_group_of_set[set] != NOWHERE && lease_group_of_set[set] != lease_group))
            return false;
        set_of[lease_group] = set;
        lease_group_of_set[set] = lease_group;
    }
    return true;
}

static void clear_lease_group(struct scheduler_lease_group *lease_group,
                              const struct sm_group_set *sm_groups)
{
    *lease_group = (struct scheduler_lease_group){
        .sm_groups = *sm_groups, .idle_since = SCHEDULER_NEVER, .drained_at = SCHEDULER_NEVER};
    list_init(&lease_group->wants);
}

/* Present lease groups keep their places and leases. A set without one gets the place of a lease
 * group that has no client, or a new place. There are never more sets than places, because each
 * set has an SM group of its own. */
static void keep_lease_groups(struct scheduler *scheduler, const struct sm_group_set *sets,
                              uint32_t count, const uint32_t *set_of)
{
    static const struct sm_group_set nothing;
    bool placed[SCHEDULER_LEASE_GROUPS] = {false};
    for (uint32_t i = 0; i < scheduler->lease_group_count; i++) {
        if (set_of[i] == NOWHERE) {
            clear_lease_group(&scheduler->lease_groups[i], &nothing);
        } else {
            scheduler->lease_groups[i].sm_groups = sets[set_of[i]];
            placed[set_of[i]] = true;
        }
    }
    for (uint32_t set = 0, at = 0; set < count; set++) {
        if (placed[set])
            continue;
        while (at < scheduler->lease_group_count &&
               !sm_group_set_is_empty(&scheduler->lease_groups[at].sm_groups))
            at++;
        if (at == scheduler->lease_group_count)
            scheduler->lease_group_count++;
        clear_lease_group(&scheduler->lease_groups[at], &sets[set]);
    }
}

static struct scheduler_lease_group *lease_group_of(struct scheduler *scheduler,
                                                    const struct scheduler_client *client)
{
    for (uint32_t i = 0; i < scheduler->lease_group_count; i++)
        if (sm_group_set_overlaps(&scheduler->lease_groups[i].sm_groups, &client->sm_groups))
            return &scheduler->lease_groups[i];
    return &scheduler->lease_groups[0];
}

/* Takes the client out of its lease group for good. Sums of time are compared within a lease group
 * only, so the client takes along only the surplus over the others. */
static void leave_group(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    struct scheduler_lease_group *lease_group = client->lease_group;
    if (!lease_group)
        return;
    bool counts = scheduler->schedule.mode != PROTO_MODE_CONCURRENT;
    if (client->leased && (client->in_flight == 0 || !counts))
        lease_group_settle_leftover(scheduler, client, now);
    client->account_extra_ns = saturating_sub(client->account_extra_ns, lease_group->extra_ns);
    client->extra_ns = saturating_sub(client->extra_ns, client->account_floor_ns);
    client->account_floor_ns = 0;
    list_remove(&client->wants_link);
    client->lease_group = NULL;
}

void lease_group_meet(struct scheduler *scheduler, struct scheduler_client *client)
{
    const struct scheduler_client *other;
    uint64_t reached = client->lease_group->extra_ns;
    client->account_extra_ns = max(client->account_extra_ns, reached);
    LIST_FOR_EACH (other, &scheduler->clients, link)
        if (other != client && other->accounts.of[0] == client->accounts.of[0] &&
            other->lease_group == client->lease_group) {
            client->account_extra_ns = other->account_extra_ns;
            client->account_floor_ns = other->account_floor_ns;
            break;
        }
    client->extra_ns = max(client->extra_ns, client->account_floor_ns);
}

static void join_group(struct scheduler *scheduler, struct scheduler_client *client)
{
    struct scheduler_lease_group *lease_group = client->lease_group =
        lease_group_of(scheduler, client);
    lease_group_meet(scheduler, client);
    lease_group->in_flight += client->in_flight;
    if (client->wants)
        lease_group_queue(lease_group, client);
}

void lease_group_regroup(struct scheduler *scheduler, bool all, uint64_t now)
{
    struct sm_group_set sets[SCHEDULER_LEASE_GROUPS];
    uint32_t set_of[SCHEDULER_LEASE_GROUPS];
    uint32_t count = find_lease_groups(scheduler, sets);
    struct scheduler_client *client;
    if (!all && match_lease_groups(scheduler, sets, count, set_of)) {
        keep_lease_groups(scheduler, sets, count, set_of);
    } else {
        LIST_FOR_EACH (client, &scheduler->clients, link)
            leave_group(scheduler, client, now);
        scheduler->lease_group_count = count;
        for (uint32_t i = 0; i < count; i++)
            clear_lease_group(&scheduler->lease_groups[i], &sets[i]);
    }
    LIST_FOR_EACH (client, &scheduler->clients, link)
        if (!client->lease_group)
            join_group(scheduler, client);
    for (uint32_t i = 0; i < scheduler->lease_group_count; i++)
        lease_group_advance(scheduler, &scheduler->lease_groups[i], now);
}

/* An account's request counts once, and its clients' own requests are a part of it. left_out: the
 * account whose request does not count. */
static void add_request(struct lease_group_sum *sum, const struct scheduler_client *client,
                        const struct scheduler_account *left_out, uint64_t count)
{
    struct scheduler_account *account = client->accounts.of[0];
    uint32_t request = account->time_request ? account->time_request : client->limits.request;
    if (!request || (account->time_request && account->counted == count))
        return;
    account->counted = account->time_request ? count : account->counted;
    if (account->time_request && account == left_out)
        return;
    if (sum->holders < 4)
        sum->some[sum->holders] = request;
    sum->holders++;
    sum->requests += request;
}

/* Sums must not depend on who has work at the moment, and loans do. A client that has nothing but
 * loans counts where it is. */
static struct sm_group_set without_loans(const struct scheduler_client *client,
                                         const struct sm_group_set *sm_groups)
{
    struct sm_group_set set = *sm_groups;
    sm_group_set_cut(&set, &client->foreign);
    return sm_group_set_is_empty(&set) ? *sm_groups : set;
}

void lease_group_sum(struct scheduler *scheduler, const struct scheduler_client *client,
                     const struct sm_group_set *sm_groups, struct lease_group_sum *sum)
{
    struct sm_group_set joined = without_loans(client, sm_groups), before, set;
    const struct scheduler_client *other;
    do {
        before = joined;
        LIST_FOR_EACH (other, &scheduler->clients, link) {
            set = without_loans(other, &other->sm_groups);
            if (other != client && sm_group_set_overlaps(&joined, &set))
                sm_group_set_join(&joined, &set);
        }
    } while (memcmp(&before, &joined, sizeof joined) != 0);
    *sum = (struct lease_group_sum){0};
    struct scheduler_account *account = client->accounts.of[0];
    uint64_t count = ++scheduler->sums;
    LIST_FOR_EACH (other, &scheduler->clients, link) {
        set = without_loans(other, &other->sm_groups);
        if (other != client && sm_group_set_overlaps(&joined, &set))
            add_request(sum, other, account, count);
    }
    sum->has_account = account->counted == count;
}
