/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/scheduler.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/messages.h"
#include "common/list.h"
#include "common/units.h"
#include "common/util.h"
#include "server/scheduler/balance.h"
#include "server/scheduler/lateness.h"
#include "server/scheduler/lease_group.h"
#include "server/scheduler/level.h"
#include "server/scheduler/policy.h"
#include "server/scheduler/requests.h"

/* ---- settings ---- */

void scheduler_defaults(struct scheduler_schedule *schedule)
{
    *schedule = (struct scheduler_schedule){.mode = PROTO_MODE_CONCURRENT,
                                            .lease_ns = PROTO_LEASE_DEFAULT,
                                            .precision = PROTO_PRECISION_DEFAULT,
                                            .quantum_ns = PROTO_QUANTUM_DEFAULT,
                                            .in_flight_limit = 128,
                                            .in_flight_limit_ns = 8 * UNITS_MS,
                                            .quiet_in_flight_limit = 32,
                                            .low_in_flight_limit = 1,
                                            .low_ns = UNITS_MS / 10,
                                            .linger_ns = UNITS_SECOND};
}

static uint32_t check_range(const char *name, uint64_t value, uint64_t least, uint64_t most,
                            struct error *why)
{
    if (value >= least && value <= most)
        return 0;
    return error_set(why, MESSAGE(schedule_range), name, (unsigned long long)value,
                     (unsigned long long)least, (unsigned long long)most);
}

uint32_t scheduler_check(const struct scheduler_schedule *schedule, struct error *why)
{
    const struct {
        const char *name;
        uint64_t value, least, most;
    } ranges[] = {
        {"mode", schedule->mode, PROTO_MODE_CONCURRENT, PROTO_MODE_TURNS},
        {"lease (ns)", schedule->lease_ns, PROTO_WORKER_SCHEDULE_LEASE_MIN,
         PROTO_WORKER_SCHEDULE_LEASE_MAX},
        {"precision (hundredths of a per cent)", schedule->precision,
         PROTO_WORKER_SCHEDULE_PRECISION_MIN, PROTO_WORKER_SCHEDULE_PRECISION_MAX},
        {"quantum (ns)", schedule->quantum_ns, PROTO_WORKER_SCHEDULE_QUANTUM_MIN,
         PROTO_WORKER_SCHEDULE_QUANTUM_MAX},
        {"idle time before a lease is given back (ns)", schedule->idle_ns, 0,
         PROTO_WORKER_SCHEDULE_QUANTUM_MAX},
        {"in-flight limit", schedule->in_flight_limit, 1, UINT32_MAX},
        {"in-flight limit (ns)", schedule->in_flight_limit_ns, 0,
         PROTO_WORKER_SCHEDULE_QUANTUM_MAX},
        {"quiet in-flight limit", schedule->quiet_in_flight_limit, 1, schedule->in_flight_limit},
        {"low in-flight limit", schedule->low_in_flight_limit, 1, schedule->quiet_in_flight_limit},
        {"low in-flight limit (ns)", schedule->low_ns, 0, PROTO_WORKER_SCHEDULE_QUANTUM_MAX},
        {"linger (ns)", schedule->linger_ns, 0, PROTO_WORKER_SCHEDULE_QUANTUM_MAX},
    };
    uint32_t error = 0;
    for (size_t i = 0; !error && i < sizeof ranges / sizeof *ranges; i++)
        error = check_range(ranges[i].name, ranges[i].value, ranges[i].least, ranges[i].most, why);
    return error;
}

static void apply_schedule(struct scheduler *scheduler, const struct scheduler_schedule *schedule,
                           uint64_t now)
{
    scheduler->schedule = *schedule;
    plan_set(&scheduler->plan, schedule->lease_ns, schedule->precision, now);
    bool turns = schedule->mode == PROTO_MODE_TURNS;
    /* The values that scheduler.h promises for 0. */
    uint64_t chosen = turns ? schedule->quantum_ns / 600 : schedule->lease_ns / 50;
    if (!turns && chosen > UNITS_MS)
        chosen = UNITS_MS;
    scheduler->idle_ns = schedule->idle_ns ? schedule->idle_ns : chosen;
}

void scheduler_open(struct scheduler *scheduler, const struct scheduler_schedule *schedule,
                    uint64_t now)
{
    memset(scheduler, 0, sizeof *scheduler);
    list_init(&scheduler->clients);
    list_init(&scheduler->throttled);
    list_init(&scheduler->lower);
    list_init(&scheduler->ahead);
    apply_schedule(scheduler, schedule, now);
    scheduler->throttled_until = SCHEDULER_NEVER;
    scheduler->first_level = SCHEDULER_LEVELS;
    lease_group_regroup(scheduler, true, now);
}

static bool enforces_time(enum proto_mode mode)
{
    return mode == PROTO_MODE_STRICT || mode == PROTO_MODE_FAIR;
}

bool scheduler_time_enforced(const struct scheduler *scheduler)
{
    return enforces_time(scheduler->schedule.mode);
}

/* ---- holding clients back ---- */

static enum scheduler_hold reason_of(const struct scheduler *scheduler, const struct list *list)
{
    if (list == &scheduler->ahead)
        return SCHEDULER_HOLD_LEASE;
    return list == &scheduler->lower ? SCHEDULER_HOLD_PRIORITY : SCHEDULER_HOLD_DUTY;
}

/* The reason for which the client waits; SCHEDULER_HOLDS if it does not wait. */
static enum scheduler_hold held_by(const struct scheduler *scheduler,
                                   const struct scheduler_client *client)
{
    if (scheduler->schedule.mode != PROTO_MODE_CONCURRENT)
        return client->wants && !client->leased ? SCHEDULER_HOLD_LEASE : SCHEDULER_HOLDS;
    if (!client->held)
        return SCHEDULER_HOLDS;
    return reason_of(scheduler, client->held);
}

uint64_t scheduler_throttled(const struct scheduler *scheduler,
                             const struct scheduler_client *client, enum scheduler_hold hold,
                             uint64_t now)
{
    bool waits = held_by(scheduler, client) == hold;
    return client->throttled_ns[hold] + (waits ? now - client->held_since : 0);
}

uint64_t scheduler_charged(const struct scheduler *scheduler, const struct scheduler_client *client,
                           uint64_t now)
{
    bool runs = client->leased && scheduler->schedule.mode != PROTO_MODE_CONCURRENT;
    return client->charged_ns + (runs ? now - client->charged_to : 0);
}

static void count_wait(const struct scheduler *scheduler, struct scheduler_client *client,
                       uint64_t now)
{
    enum scheduler_hold hold = held_by(scheduler, client);
    if (hold != SCHEDULER_HOLDS)
        client->throttled_ns[hold] += now - client->held_since;
    client->held_since = now;
}

static void hold_client(struct list *list, struct scheduler_client *client)
{
    client->held = list;
    list_append(list, &client->held_link);
}

static void let_go(struct scheduler_client *client)
{
    list_remove(&client->held_link);
    client->held = NULL;
}

static void forget_name(struct scheduler *scheduler, struct scheduler_client *client)
{
    if (client->granted)
        queue_remove(&scheduler->grants, &client->grant_link);
    client->granted = false;
}

/* The client has used the turn that it was named for, or does not want it. */
static void end_turn(struct scheduler *scheduler, struct scheduler_client *client)
{
    scheduler->low_turns -= client->low_turn;
    client->low_turn = false;
}

/* Names all clients that are held back, so that they ask again. */
static void let_all_go(struct scheduler *scheduler, uint64_t now)
{
    const struct list *lists[] = {&scheduler->throttled, &scheduler->lower, &scheduler->ahead};
    struct scheduler_client *client;
    for (int i = 0; i < 3; i++)
        LIST_FOR_EACH (client, lists[i], held_link) {
            count_wait(scheduler, client, now);
            let_go(client);
            lease_group_name(scheduler, client);
        }
    scheduler->throttled_until = SCHEDULER_NEVER;
}

/* ---- clients ---- */

static uint32_t cap_of(const struct scheduler *scheduler, const struct scheduler_limits *limits)
{
    return scheduler->schedule.mode == PROTO_MODE_STRICT ? policy_strict_cap(limits)
                                                         : policy_fair_cap(limits);
}

static void set_rates(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    policy_settle(&scheduler->plan, client, now);
    plan_credit_settle(&client->duty, now, plan_burst(&scheduler->plan, client->duty.rate));
    client->request.credit.rate = client->limits.request;
    client->cap.rate = cap_of(scheduler, &client->limits);
    client->duty.rate = client->limits.duty;
    for (uint32_t i = 0; i < client->accounts.count; i++)
        account_set_rates(client->accounts.of[i], scheduler->schedule.mode == PROTO_MODE_STRICT);
}

static uint32_t check_limits(struct scheduler *scheduler, const struct scheduler_client *client,
                             const struct scheduler_limits *limits,
                             const struct sm_group_set *sm_groups, struct error *why)
{
    uint32_t error =
        check_range("time limit (hundredths of a per cent)", limits->limit, 1, PLAN_WHOLE, why);
    if (!error)
        error = check_range("duty (hundredths of a per cent)", limits->duty, 1, PLAN_WHOLE, why);
    if (!error)
        error = check_range("priority level", limits->level, 0, SCHEDULER_LEVELS - 1, why);
    if (error)
        return error;
    if (limits->request > limits->limit)
        return error_set(why, MESSAGE(time_request_over_limit), limits->request / 100,
                         limits->request % 100, limits->limit / 100, limits->limit % 100);
    return scheduler_time_enforced(scheduler)
               ? requests_check(scheduler, client, limits->request, sm_groups, why)
               : 0;
}

/* Credit does not pass from one mode to another, because some modes don't count any. */
static void drop_credit(struct scheduler_client *client)
{
    client->account_extra_ns = client->account_floor_ns = client->extra_ns = 0;
    client->ahead = client->guest = false;
    if (client->request.credit.parts > 0)
        client->request.credit.parts = 0;
    if (client->cap.parts > 0)
        client->cap.parts = 0;
}

uint32_t scheduler_set(struct scheduler *scheduler, const struct scheduler_schedule *schedule,
                       uint64_t now, struct error *why)
{
    uint32_t error = scheduler_check(schedule, why);
    if (error)
        return error;
    bool another = schedule->mode != scheduler->schedule.mode;
    /* Only a mode that begins to enforce time checks the sums. In a mode that enforced it
     * before, lent SM groups may bring a sum above 1 for a while; that is no reason to refuse. */
    if (enforces_time(schedule->mode) && !scheduler_time_enforced(scheduler))
        error = requests_check_all(scheduler, NULL, why);
    if (error)
        return error;
    let_all_go(scheduler, now);
    struct scheduler_client *client;
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        /* Credit and waiting up to now belong to the old plan and mode. */
        set_rates(scheduler, client, now);
        count_wait(scheduler, client, now);
    }
    apply_schedule(scheduler, schedule, now);
    LIST_FOR_EACH (client, &scheduler->clients, link) {
        set_rates(scheduler, client, now);
        if (another)
            drop_credit(client);
        if (schedule->mode == PROTO_MODE_CONCURRENT && client->wants)
            lease_group_name(scheduler, client);
    }
    lease_group_regroup(scheduler, true, now);
    return 0;
}

static void enter_accounts(struct scheduler_client *client)
{
    for (uint32_t i = 0; i < client->accounts.count; i++)
        client->accounts.of[i]->members++;
    client->accounts.of[0]->clients++;
}

/* The client has no work and no lease, as far as the account counts it. */
static void leave_accounts(struct scheduler *scheduler, struct scheduler_client *client)
{
    for (uint32_t i = 0; i < client->accounts.count; i++)
        client->accounts.of[i]->members--;
    client->accounts.of[0]->clients--;
    lease_group_forget(scheduler, client->accounts.of[0]);
}

uint32_t scheduler_add(struct scheduler *scheduler, struct scheduler_client *client,
                       const struct scheduler_limits *limits,
                       const struct scheduler_accounts *accounts,
                       const struct sm_group_set *sm_groups, uint64_t now, struct error *why)
{
    struct sm_group_set everywhere;
    sm_group_set_all(&everywhere);
    if (!sm_groups || sm_group_set_is_empty(sm_groups))
        sm_groups = &everywhere;
    *client = (struct scheduler_client){.limits = *limits, .sm_groups = *sm_groups, .arrived = now};
    account_open(&client->self, 0, "the client", now);
    client->accounts = accounts ? *accounts : (struct scheduler_accounts){{&client->self}, 1};
    uint32_t error = check_limits(scheduler, client, limits, sm_groups, why);
    if (error)
        return error;
    client->present = true;
    client->request.credit.at = client->cap.at = client->duty.at = now;
    enter_accounts(client);
    set_rates(scheduler, client, now);
    list_prepend(&scheduler->clients, &client->link);
    scheduler->client_count++;
    level_join(scheduler, client);
    lease_group_regroup(scheduler, false, now);
    debts_owe(&scheduler->debts, client, now);
    client->spends = now; /* what it owes by now was not its doing */
    return 0;
}

/* Called when a client's limits or place have changed: clients that are held ask again. */
static void look_again(struct scheduler *scheduler, uint64_t now)
{
    let_all_go(scheduler, now);
    for (uint32_t i = 0; i < scheduler->lease_group_count; i++) {
        scheduler->lease_groups[i].look_at = 0;
        lease_group_advance(scheduler, &scheduler->lease_groups[i], now);
    }
}

/* Takes the client out of its account's counts for a moment. */
static void stop_counting(struct scheduler *scheduler, struct scheduler_client *client,
                          uint64_t now)
{
    bool wants = client->wants, leased = client->leased;
    client->wants = client->leased = false;
    account_note(&scheduler->plan, client, &scheduler->tickets, now);
    account_leave(&scheduler->plan, client, now);
    client->wants = wants;
    client->leased = leased;
}

static void move_client(struct scheduler *scheduler, struct scheduler_client *client,
                        const struct scheduler_accounts *accounts, uint64_t now)
{
    if (client->leased && scheduler->schedule.mode != PROTO_MODE_CONCURRENT)
        lease_group_charge(scheduler, client, now);
    bool another = accounts->of[0] != client->accounts.of[0];
    if (another)
        stop_counting(scheduler, client, now);
    leave_accounts(scheduler, client);
    client->accounts = *accounts;
    enter_accounts(client);
    if (!another)
        return;
    if (client->pays != &client->request)
        client->pays = &client->accounts.of[0]->request;
    client->account_extra_ns = client->account_floor_ns = client->extra_ns = 0;
    lease_group_meet(scheduler, client);
}

uint32_t scheduler_update(struct scheduler *scheduler, struct scheduler_client *client,
                          const struct scheduler_limits *limits,
                          const struct scheduler_accounts *accounts, uint64_t now,
                          struct error *why)
{
    struct scheduler_accounts before = client->accounts;
    if (accounts)
        client->accounts = *accounts;
    uint32_t error = check_limits(scheduler, client, limits, &client->sm_groups, why);
    client->accounts = before;
    if (error)
        return error;
    level_leave(scheduler, client, now);
    policy_settle(&scheduler->plan, client, now);
    if (accounts)
        move_client(scheduler, client, accounts, now);
    client->limits = *limits;
    account_note(&scheduler->plan, client, &scheduler->tickets, now);
    level_join(scheduler, client);
    set_rates(scheduler, client, now);
    look_again(scheduler, now);
    return 0;
}

/* ---- accounts ---- */

void scheduler_account_open(struct scheduler_account *account, uint64_t number, const char *name,
                            uint64_t now)
{
    account_open(account, number, name, now);
}

uint32_t scheduler_account_set(struct scheduler *scheduler, struct scheduler_account *account,
                               uint32_t request, uint32_t limit, uint64_t now, struct error *why)
{
    uint32_t error =
        check_range("time limit (hundredths of a per cent)", limit, 1, PLAN_WHOLE, why);
    if (!error && request > limit)
        error = error_set(why, MESSAGE(time_request_over_limit), request / 100, request % 100,
                          limit / 100, limit % 100);
    if (!error && scheduler_time_enforced(scheduler))
        error = requests_check_account(scheduler, account, request, why);
    if (error)
        return error;
    account_settle(&scheduler->plan, account, now);
    if (!account->time_request)
        account->request.credit.parts = 0; /* what an earlier request left */
    account->time_request = request;
    account->time_limit = limit;
    account_set_rates(account, scheduler->schedule.mode == PROTO_MODE_STRICT);
    look_again(scheduler, now);
    return 0;
}

void scheduler_account_set_duty(struct scheduler *scheduler, struct scheduler_account *account,
                                uint32_t duty, uint64_t now)
{
    struct credit *credit = &account->duty;
    plan_cap_settle(credit, now, plan_burst(&scheduler->plan, credit->rate));
    credit->rate = duty;
    look_again(scheduler, now);
}

bool scheduler_has_duty(const struct scheduler_client *client)
{
    bool has = client->limits.duty != PLAN_WHOLE;
    for (uint32_t i = 0; i < client->accounts.count; i++)
        has |= client->accounts.of[i]->duty.rate != PLAN_WHOLE;
    return has;
}

void scheduler_set_foreign(struct scheduler_client *client, const struct sm_group_set *foreign)
{
    client->foreign = *foreign;
}

void scheduler_place(struct scheduler *scheduler, struct scheduler_client *client,
                     const struct sm_group_set *sm_groups, uint64_t now)
{
    client->sm_groups = *sm_groups;
    if (sm_group_set_is_empty(sm_groups))
        sm_group_set_all(&client->sm_groups);
    lease_group_regroup(scheduler, false, now);
}

void scheduler_remove(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    if (!client->present)
        return;
    scheduler_idle(scheduler, client, now);
    let_go(client);
    level_leave(scheduler, client, now);
    scheduler->total_in_flight -= client->in_flight;
    client->lease_group->in_flight -= client->in_flight;
    client->in_flight = 0;
    if (client->lease_group->holder == client) {
        client->lease_group->closing = true;
        if (client->lease_group->lease_ends > now) /* an overrun stays charged */
            client->lease_group->lease_ends = now;
        lease_group_advance(scheduler, client->lease_group, now);
    }
    /* Before the client leaves its lease group, whose sum of idle time says how much it had
     * beyond the others. */
    debts_keep(&scheduler->debts, client, &scheduler->clients, scheduler->schedule.quantum_ns, now);
    client->leased = false;
    account_note(&scheduler->plan, client, &scheduler->tickets, now);
    account_leave(&scheduler->plan, client, now);
    leave_accounts(scheduler, client);
    list_remove(&client->link);
    scheduler->client_count--;
    forget_name(scheduler, client);
    client->present = false;
    client->lease_group = NULL;
    lease_group_regroup(scheduler, false, now);
}

/* ---- the hot path ---- */

/* Whether a guest makes room for the client. */
static bool is_owed(const struct scheduler *scheduler, struct scheduler_client *client)
{
    const struct claim *claim = account_claim(client);
    if (scheduler->schedule.mode == PROTO_MODE_TURNS)
        return client->accounts.of[0] == client->lease_group->turn.account;
    return claim && claim->credit.parts > 0;
}

void scheduler_wants(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    struct scheduler_lease_group *lease_group = client->lease_group;
    if (client->wants)
        return;
    if (!level_has_work(client))
        level_begin(scheduler, client->limits.level);
    policy_settle(&scheduler->plan, client, now);
    client->wants = true;
    account_note(&scheduler->plan, client, &scheduler->tickets, now);
    client->held_since = now;
    client->ticket = account_next_ticket(&client->kept, &scheduler->tickets, now);
    lease_group_queue(lease_group, client);
    if (lease_group->holder == client)
        lease_group->idle_since = SCHEDULER_NEVER;
    else if (lease_group->holder && lease_group->holder->guest && is_owed(scheduler, client))
        lease_group->lease_ends = min(lease_group->lease_ends, now);
    lease_group->look_at = 0;
    lease_group_advance(scheduler, lease_group, now);
}

void scheduler_idle(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    struct scheduler_lease_group *lease_group = client->lease_group;
    if (!client->wants)
        return;
    policy_settle(&scheduler->plan, client, now);
    count_wait(scheduler, client, now);
    let_go(client);
    end_turn(scheduler, client);
    client->wants = false;
    account_note(&scheduler->plan, client, &scheduler->tickets, now);
    lease_group->look_at = 0; /* what it leaves may be its account's */
    lease_group_unqueue(lease_group, client);
    if (!level_has_work(client))
        level_end(scheduler, client->limits.level, now);
    if (lease_group->holder == client && client->in_flight == 0)
        lease_group->idle_since = now;
    lease_group_advance(scheduler, lease_group, now);
}

static struct scheduler_answer hold_until(struct scheduler *scheduler,
                                          struct scheduler_client *client, struct list *list,
                                          uint64_t until, uint64_t now)
{
    if (client->held != list) {
        count_wait(scheduler, client, now);
        let_go(client);
        hold_client(list, client);
    }
    if (list == &scheduler->throttled)
        scheduler->throttled_until = min(scheduler->throttled_until, until);
    return (struct scheduler_answer){.hold = reason_of(scheduler, list), .until = until};
}

static void go_on(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now)
{
    if (!client->held)
        return;
    count_wait(scheduler, client, now);
    let_go(client);
}

static struct scheduler_answer may_submit_at_once(struct scheduler *scheduler,
                                                  struct scheduler_client *client, uint64_t now)
{
    uint64_t ready = policy_concurrent_ready(&scheduler->plan, client, now);
    if (ready > now) {
        end_turn(scheduler, client); /* the room that it was named for goes to the others */
        return hold_until(scheduler, client, &scheduler->throttled, ready, now);
    }
    if (client->ahead) {
        end_turn(scheduler, client);
        return hold_until(scheduler, client, &scheduler->ahead, SCHEDULER_NEVER, now);
    }
    uint32_t urgent = policy_concurrent_urgent(scheduler, now);
    uint32_t in_flight_limit = policy_concurrent_in_flight_limit(scheduler, client, urgent);
    /* A client that waits for the lower levels' room, or was named for it, comes before a client
     * that only asks. Otherwise two clients that ask often would alternate for ever. */
    bool passes_others = client->limits.level > urgent && !client->low_turn &&
                         (!list_is_empty(&scheduler->lower) || scheduler->low_turns);
    end_turn(scheduler, client);
    if (in_flight_limit == 0 || passes_others)
        return hold_until(scheduler, client, &scheduler->lower, SCHEDULER_NEVER, now);
    go_on(scheduler, client, now);
    uint32_t room = (uint32_t)saturating_sub(in_flight_limit, client->in_flight);
    return (struct scheduler_answer){
        .room = room, .hold = SCHEDULER_HOLDS, .until = SCHEDULER_NEVER};
}

struct scheduler_answer scheduler_may_submit(struct scheduler *scheduler,
                                             struct scheduler_client *client, uint64_t now)
{
    struct scheduler_lease_group *lease_group = client->lease_group;
    if (scheduler->schedule.mode == PROTO_MODE_CONCURRENT)
        return may_submit_at_once(scheduler, client, now);
    lease_group_advance(scheduler, lease_group, now);
    if (lease_group->holder != client || lease_group->closing)
        return (struct scheduler_answer){.hold = SCHEDULER_HOLD_LEASE,
                                         .until = lease_group_next_event(scheduler, lease_group)};
    return (struct scheduler_answer){.room = lease_group_room(scheduler, lease_group, now),
                                     .hold = SCHEDULER_HOLDS,
                                     .until = lease_group->lease_ends};
}

void scheduler_submitted(struct scheduler *scheduler, struct scheduler_client *client,
                         uint32_t commands, uint64_t now)
{
    (void)now;
    if (commands == 0)
        return;
    if (!level_has_work(client))
        level_begin(scheduler, client->limits.level);
    client->in_flight += commands;
    client->lease_group->in_flight += commands;
    scheduler->total_in_flight += commands;
    scheduler->level_in_flight[client->limits.level] += commands;
    if (client->lease_group->holder == client)
        client->lease_group->idle_since = SCHEDULER_NEVER;
}

/* Of commands that were seen together, one may be long and the others as short as those before. */
static uint64_t longest_of(const struct scheduler_client *client, uint32_t commands, uint64_t span,
                           uint64_t mean)
{
    uint64_t each = client->mean_ns ? min(client->mean_ns, mean) : mean;
    return max(mean, saturating_sub(span, each * (commands - 1) + LATENESS_NS));
}

static uint64_t fade(uint64_t ns, uint32_t commands)
{
    return ns - ns / 32 * min(commands, 16u);
}

static void learn_pair(struct scheduler_pair *pair, uint32_t commands, uint64_t longest)
{
    pair->lately_ns = max(pair->lately_ns, min(longest, pair->last_ns));
    pair->last_ns = max(fade(pair->last_ns, commands), longest);
}

void scheduler_pace(struct scheduler_client *client, uint32_t commands, uint64_t span_ns)
{
    uint64_t mean = span_ns / commands;
    learn_pair(&client->pair, commands, longest_of(client, commands, span_ns, mean));
    /* A moving average: one command weighs an eighth, and eight commands replace the mean. */
    uint64_t weight = min(commands, 8u);
    client->mean_ns = client->mean_ns ? (client->mean_ns * (8 - weight) + mean * weight) / 8 : mean;
    if (client->mean_ns == 0)
        client->mean_ns = 1;
    /* The peak fades by a 32nd with each command, so it is about the longest of the last few
     * dozen. */
    client->peak_ns = max(fade(client->peak_ns, commands), max(mean, client->mean_ns));
}

void scheduler_charge(struct scheduler *scheduler, struct scheduler_client *client,
                      uint64_t device_ns, uint64_t now)
{
    if (scheduler->schedule.mode != PROTO_MODE_CONCURRENT)
        return;
    client->charged_ns += device_ns;
    balance_charge(scheduler, client, device_ns);
    scheduler->look_at_balance = true;
    policy_concurrent_charge(&scheduler->plan, client, device_ns, now);
}

void scheduler_give_back(struct scheduler *scheduler, struct scheduler_client *client,
                         uint32_t commands, uint64_t now)
{
    struct scheduler_lease_group *lease_group = client->lease_group;
    /* A report of too many commands must not make the counts wrap around. */
    commands = min(commands, client->in_flight);
    bool was_busy = level_has_work(client);
    client->in_flight -= commands;
    lease_group->in_flight -= commands;
    scheduler->total_in_flight -= commands;
    scheduler->level_in_flight[client->limits.level] -= commands;
    if (was_busy && !level_has_work(client))
        level_end(scheduler, client->limits.level, now);
    if (scheduler->paused && lease_group->holder == client && client->in_flight == 0)
        lease_group->drained_at = min(lease_group->drained_at, now);
    if (client->in_flight == 0 && client->leased && lease_group->holder != client)
        lease_group_settle_leftover(scheduler, client, now);
    if (client->in_flight == 0 && commands && lease_group->holder == client && !client->wants)
        lease_group->idle_since = now;
    lease_group_advance(scheduler, lease_group, now);
}

void scheduler_done(struct scheduler *scheduler, struct scheduler_client *client, uint32_t commands,
                    uint64_t now)
{
    client->tested += commands;
    scheduler_give_back(scheduler, client, commands, now);
}

/* ---- a pause ---- */

void scheduler_pause(struct scheduler *scheduler, uint64_t now)
{
    lease_group_pause_all(scheduler, now);
}

void scheduler_stop_between(struct scheduler *scheduler, bool on)
{
    scheduler->stops_between = on;
}

void scheduler_resume(struct scheduler *scheduler, uint64_t now)
{
    if (!scheduler->paused)
        return;
    scheduler->paused = scheduler->between = false;
    for (uint32_t i = 0; i < scheduler->lease_group_count; i++)
        lease_group_resume(scheduler, &scheduler->lease_groups[i], now);
}

uint64_t scheduler_next_event(const struct scheduler *scheduler, uint64_t now)
{
    if (scheduler->paused)
        return SCHEDULER_NEVER;
    uint64_t next = scheduler->look_at_balance ? now : level_next_event(scheduler);
    if (scheduler->schedule.mode == PROTO_MODE_CONCURRENT) {
        next = min(next, scheduler->throttled_until);
    } else {
        for (uint32_t i = 0; i < scheduler->lease_group_count; i++)
            next = min(next, lease_group_next_event(scheduler, &scheduler->lease_groups[i]));
    }
    return queue_is_empty(&scheduler->grants) ? max(next, now) : now;
}

static void look_at_throttled(struct scheduler *scheduler, uint64_t now)
{
    if (now < scheduler->throttled_until)
        return;
    scheduler->throttled_until = SCHEDULER_NEVER;
    struct scheduler_client *client;
    LIST_FOR_EACH (client, &scheduler->throttled, held_link) {
        uint64_t ready = policy_concurrent_ready(&scheduler->plan, client, now);
        if (ready <= now) {
            go_on(scheduler, client, now);
            lease_group_name(scheduler, client);
        } else {
            scheduler->throttled_until = min(scheduler->throttled_until, ready);
        }
    }
}

/* After each report of time used. An account that waits does not wait for ever: the others' reports
 * go on while they have work, and when they have none nobody is held. */
static void look_at_balance(struct scheduler *scheduler, uint64_t now)
{
    struct scheduler_client *client;
    if (!scheduler->look_at_balance)
        return;
    scheduler->look_at_balance = false;
    if (scheduler->schedule.mode != PROTO_MODE_CONCURRENT)
        return;
    balance_look(scheduler, now);
    LIST_FOR_EACH (client, &scheduler->ahead, held_link)
        if (!client->ahead) {
            go_on(scheduler, client, now);
            lease_group_name(scheduler, client);
        }
}

static void look_at_lower(struct scheduler *scheduler, uint64_t now)
{
    struct scheduler_client *client =
        LIST_FIRST(&scheduler->lower, struct scheduler_client, held_link);
    if (!client || scheduler->low_turns ||
        policy_concurrent_in_flight_limit(scheduler, client,
                                          policy_concurrent_urgent(scheduler, now)) == 0)
        return;
    go_on(scheduler, client, now);
    client->low_turn = true;
    scheduler->low_turns++;
    lease_group_name(scheduler, client);
}

struct scheduler_client *scheduler_decide(struct scheduler *scheduler, uint64_t now)
{
    if (scheduler->paused)
        return NULL;
    /* The caller asks until there is no more, so a look for each answer would be wasted. */
    if (queue_is_empty(&scheduler->grants)) {
        for (uint32_t i = 0; i < scheduler->lease_group_count; i++)
            lease_group_advance(scheduler, &scheduler->lease_groups[i], now);
        look_at_throttled(scheduler, now);
        look_at_balance(scheduler, now);
        look_at_lower(scheduler, now);
    }
    struct scheduler_client *client =
        QUEUE_TAKE(&scheduler->grants, struct scheduler_client, grant_link);
    if (client)
        client->granted = false;
    return client;
}
