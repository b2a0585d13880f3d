/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/gate.h"

#include <stddef.h>
#include <string.h>

#include "common/clock.h"
#include "common/util.h"
#include "server/worker/client/client.h"

/* The submitter polls for the end of a lease's last work if it is this near: a sleep and a wake-up
 * take a good part of that time. */
#define AWAIT_NS 200000
/* The end of work is seen only when its batch is done, so a batch takes no longer than this. Each
 * batch ends with a stream memory operation, which takes 2 us and is charged with it: batches are
 * longer than half of this where kernels are shorter, so that is at most 1 %. */
#define BATCH_NS 400000
/* A pace is learned from at least so many commands or so much time, since the moment at which the
 * end of work is seen varies. */
#define PACE_COMMANDS 8
#define PACE_NS       1000000

/* ---- runnable clients ---- */

static void set_hold(struct gate *gate, struct gate_client *at, enum scheduler_hold hold)
{
    bool waited = at->hold == SCHEDULER_HOLD_LEASE || at->hold == SCHEDULER_HOLD_PRIORITY;
    bool waits = hold == SCHEDULER_HOLD_LEASE || hold == SCHEDULER_HOLD_PRIORITY;
    gate->watch.changes += at->hold != hold;
    at->hold = hold;
    if (waits && !waited)
        atomic_fetch_add(&gate->held_count, 1);
    else if (waited && !waits)
        atomic_fetch_sub(&gate->held_count, 1);
}

static void mark_runnable(struct gate *gate, struct gate_client *at)
{
    set_hold(gate, at, SCHEDULER_HOLDS);
    if (at->runnable || at->dropped)
        return;
    at->runnable = true;
    at->runnable_next = NULL;
    *(gate->runnable_last ? &gate->runnable_last->runnable_next : &gate->runnable_first) = at;
    gate->runnable_last = at;
}

static struct gate_client *take_runnable(struct gate *gate)
{
    struct gate_client *at = gate->runnable_first;
    if (!at)
        return NULL;
    gate->runnable_first = at->runnable_next;
    if (!gate->runnable_first)
        gate->runnable_last = NULL;
    at->runnable = false;
    return at;
}

static void forget_runnable(struct gate *gate, const struct gate_client *gone)
{
    struct gate_client *kept = gate->runnable_first;
    gate->runnable_first = gate->runnable_last = NULL;
    while (kept) {
        struct gate_client *next = kept->runnable_next;
        kept->runnable = false;
        if (kept != gone)
            mark_runnable(gate, kept);
        kept = next;
    }
}

static struct gate_client *gate_client_of(struct scheduler_client *scheduled)
{
    return container_of(scheduled, struct gate_client, scheduled);
}

/* Finds a lease that has expired and whose last work is about to end. */
static void look_for_ending(struct gate *gate, uint64_t now)
{
    for (uint32_t i = 0; i < gate->scheduler.lease_group_count && !gate->ending; i++) {
        const struct scheduler_lease_group *lease_group = &gate->scheduler.lease_groups[i];
        if (!lease_group->closing || lease_group->wants_count == 0)
            continue;
        /* Not long after the lease's end: the mean may be far off, and the submitter polls
         * meanwhile. */
        uint64_t left = lease_group->in_flight * lease_group->holder->mean_ns;
        if (left < AWAIT_NS && !gate_client_of(lease_group->holder)->dropped &&
            now < lease_group->lease_ends + 2 * AWAIT_NS)
            gate->ending = gate_client_of(lease_group->holder);
    }
}

/* To be called after the scheduler was told anything: takes the clients that it names, and the time
 * of the next decision. */
static void apply_decisions(struct gate *gate, uint64_t now)
{
    uint64_t next = SCHEDULER_NEVER;
    gate->ending = NULL;
    if (!gate_is_open(gate)) {
        struct scheduler_client *named;
        while ((named = scheduler_decide(&gate->scheduler, now))) {
            mark_runnable(gate, gate_client_of(named));
            /* The next client of a lower level is named when this one has submitted. */
            if (named->low_turn)
                break;
        }
        next = scheduler_next_event(&gate->scheduler, now);
        look_for_ending(gate, now);
    }
    if (gate->scheduler.between && !gate_is_paused(gate)) {
        atomic_store(&gate->paused, 1);
        if (gate->between)
            gate->between(gate->between_context);
    }
    atomic_store(&gate->has_ending, gate->ending != NULL);
    /* Sequentially consistent, as the submitter's sleep needs it; see wake.h. */
    atomic_store(&gate->next, gate->runnable_first ? 0 : next);
    if (gate_trace_wanted(&gate->watch))
        gate_trace_look(gate, now);
}

/* ---- what is in flight ---- */

/* The end of work is seen at varying moments. Over several commands, or over a long one, that evens
 * out. */
static void learn_pace(struct gate_client *at, uint64_t completed, uint32_t in_flight, uint64_t now)
{
    struct scheduler_client *scheduled = &at->scheduled;
    uint64_t done = completed - at->completed, span = now - at->counted_at;
    if (at->counted_busy && in_flight && done < PACE_COMMANDS && (done == 0 || span < PACE_NS))
        return;
    /* With nothing left in flight the work ended some time ago, so the client's pace is this or
     * better. */
    bool better = scheduled->mean_ns == 0 || span / (done ? done : 1) < scheduled->mean_ns;
    if (done && at->counted_busy && (in_flight || better))
        scheduler_pace(scheduled, done < UINT32_MAX ? (uint32_t)done : UINT32_MAX, span);
    at->completed = completed;
    at->counted_at = now;
    at->counted_busy = in_flight > 0;
}

static void set_in_flight_limits(const struct gate *gate, struct gate_client *at)
{
    at->in_flight_limit = policy_in_flight_limit(&gate->scheduler.schedule, &at->scheduled, false);
    uint64_t narrow = gate_narrowed(gate), mean = at->scheduled.mean_ns;
    if (narrow != GATE_WIDE) {
        uint64_t least = max(at->scheduled.rings, 1u), by_time = mean ? narrow / mean : 0;
        at->in_flight_limit = (uint32_t)min((uint64_t)at->in_flight_limit, max(by_time, least));
    }
    /* While the pace is unknown, a quarter: its end is seen while the rest keeps the device
     * busy. */
    uint64_t batch =
        at->scheduled.mean_ns ? BATCH_NS / at->scheduled.mean_ns : at->in_flight_limit / 4;
    at->batch = batch < 1 ? 1 : batch < at->in_flight_limit ? (uint32_t)batch : at->in_flight_limit;
}

/* Fewer commands are in flight than the scheduler knows of: those that are completed, and those
 * that had room and were not there to submit. */
static void report_fewer(struct gate *gate, struct gate_client *at, uint32_t in_flight,
                         uint64_t completed, uint64_t now)
{
    struct scheduler_client *scheduled = &at->scheduled;
    uint32_t fewer = scheduled->in_flight - in_flight;
    uint32_t done = (uint32_t)min(completed - at->told, (uint64_t)fewer);
    if (fewer > done)
        scheduler_give_back(&gate->scheduler, scheduled, fewer - done, now);
    if (done)
        scheduler_done(&gate->scheduler, scheduled, done, now);
}

/* Tells the scheduler what happened since it was last told. Under the client's lock and the
 * gate's. */
static void count_in_flight(struct gate *gate, struct client *client, uint64_t now)
{
    struct gate_client *at = &client->gate;
    struct scheduler_client *scheduled = &at->scheduled;
    uint32_t in_flight = client->shared.in_flight = client_in_flight(client);
    /* Relaxed: a hint, which changes under the lock of struct placement_table. */
    scheduled->borrows = atomic_load_explicit(&client->place.borrows, memory_order_relaxed);
    const uint64_t completed = at->submitted - in_flight;
    learn_pace(at, completed, in_flight, now);
    set_in_flight_limits(gate, at);
    if (in_flight > scheduled->in_flight)
        scheduler_submitted(&gate->scheduler, scheduled, in_flight - scheduled->in_flight, now);
    else if (in_flight < scheduled->in_flight)
        report_fewer(gate, at, in_flight, completed, now);
    at->told = completed;
}

static uint32_t rings_with_work(const struct client *client)
{
    uint32_t rings = 0;
    for (uint32_t i = 0; i < (client->stream_count + 63) / 64; i++)
        rings += (uint32_t)__builtin_popcountll(client->shared.ready[i] | client->shared.busy[i]);
    return rings;
}

/* ---- the submitter ---- */

/* Half of what is in flight: the client is not woken for each command that ends, and the device
 * does not run dry. Under the client's lock and the gate's. */
static void set_resume_point(struct client *client)
{
    struct gate_client *at = &client->gate;
    at->go_on_at = client->shared.in_flight / 2;
    at->go_on_ns = at->go_on_at * at->scheduled.mean_ns;
}

/* The client has as much in flight as it may. Work of one ring may take any time, so its other
 * rings have a few commands each beyond that. */
static uint32_t room_of_lacking(struct gate *gate, struct client *client, uint32_t max)
{
    struct gate_client *at = &client->gate;
    uint32_t each = gate_narrowed(gate) == GATE_WIDE ? SCHEDULER_IN_FLIGHT_MIN : 1;
    /* Asked first: a ring that drains from here on has not been refused. */
    const bool drained = client_has_drained_ring(client);
    uint32_t room =
        scheduler_least_room(&gate->scheduler, &at->scheduled, client_lacking(client, each));
    at->lacking_only = room ? each : 0;
    room = min(room, max);
    /* A drained ring that got no room now would get none when it is asked again. */
    at->go_on_drained = room || !drained;
    return room;
}

static uint32_t room_while_open(struct gate *gate, struct client *client, uint32_t max)
{
    struct gate_client *at = &client->gate;
    uint32_t room = 0;
    if (client->shared.in_flight + max > at->in_flight_limit || gate_narrowed(gate) != GATE_WIDE) {
        pthread_mutex_lock(&gate->lock);
        at->scheduled.rings = rings_with_work(client);
        count_in_flight(gate, client, clock_now());
        at->counted_busy = true; /* the client is about to submit */
        if (client->shared.in_flight >= at->in_flight_limit) {
            room = room_of_lacking(gate, client, max);
            set_resume_point(client);
        }
        pthread_mutex_unlock(&gate->lock);
    }
    return client->shared.in_flight < at->in_flight_limit
               ? min(at->in_flight_limit - client->shared.in_flight, max)
               : room;
}

/* The first commands of a lease tell how many more may follow. If they were one batch, the device
 * would idle between its end and the next submission. */
static void see_each_end(struct gate_client *at)
{
    if (at->scheduled.tested < SCHEDULER_TESTED_ENOUGH)
        at->batch = 1;
}

static uint32_t ask_scheduler(struct gate *gate, struct client *client, uint32_t max, bool *held)
{
    struct gate_client *at = &client->gate;
    struct scheduler_client *scheduled = &at->scheduled;
    uint64_t now = clock_now();
    scheduled->rings = rings_with_work(client);
    scheduled->width = client->shared.width;
    count_in_flight(gate, client, now);
    at->counted_busy = true;
    scheduler_wants(&gate->scheduler, scheduled, now);
    struct scheduler_answer answer = scheduler_may_submit(&gate->scheduler, scheduled, now);
    uint32_t room = min(answer.room, max);
    see_each_end(at);
    if (gate_narrowed(gate) != GATE_WIDE) /* it counts what it has in flight already */
        room = min(room, (uint32_t)saturating_sub(at->in_flight_limit, scheduled->in_flight));
    if (gate_is_singly(gate)) { /* then a fault has one author, and one kernel */
        at->batch = 1;
        room = scheduled->in_flight ? 0 : min(room, 1u);
    }
    enum scheduler_hold hold = answer.room ? SCHEDULER_HOLDS : answer.hold;
    *held = hold != SCHEDULER_HOLDS;
    set_hold(gate, at, hold);
    bool full = !room && !*held;
    if (full)
        room = room_of_lacking(gate, client, answer.room ? min(answer.room, max) : max);
    /* The room counts as submitted at once. Otherwise a lease could pass on while its client's work
     * is on its way. */
    scheduler_submitted(&gate->scheduler, scheduled, room, now);
    apply_decisions(gate, now);
    if (full)
        set_resume_point(client);
    return room;
}

uint32_t gate_enter(struct gate *gate, struct client *client, uint32_t max, bool *held)
{
    *held = false;
    client->gate.lacking_only = 0;
    if (gate_is_open(gate))
        return room_while_open(gate, client, max);
    pthread_mutex_lock(&gate->lock);
    /* The gate may have been opened meanwhile; then the scheduler must not be asked. */
    bool open = gate_is_open(gate);
    uint32_t room = open ? 0 : ask_scheduler(gate, client, max, held);
    pthread_mutex_unlock(&gate->lock);
    return open ? room_while_open(gate, client, max) : room;
}

void gate_leave(struct gate *gate, struct client *client, bool more)
{
    if (gate_is_open(gate))
        return;
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    count_in_flight(gate, client, now);
    if (!more) {
        scheduler_idle(&gate->scheduler, &client->gate.scheduled, now);
        set_hold(gate, &client->gate, SCHEDULER_HOLDS);
    }
    apply_decisions(gate, now);
    pthread_mutex_unlock(&gate->lock);
}

struct client *gate_next_runnable(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    struct gate_client *at = take_runnable(gate);
    if (!at) {
        apply_decisions(gate, clock_now());
        at = take_runnable(gate);
    }
    if (at && !gate->runnable_first)
        apply_decisions(gate, clock_now());
    pthread_mutex_unlock(&gate->lock);
    return at ? at->client : NULL;
}

struct client *gate_find_ending(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    struct gate_client *at = gate->ending;
    bool there = at && !at->dropped;
    pthread_mutex_unlock(&gate->lock);
    return there ? at->client : NULL;
}

void gate_drop(struct gate *gate, struct client *client)
{
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    struct gate_client *at = &client->gate;
    if (at->runnable)
        forget_runnable(gate, at);
    at->dropped = true;
    if (at->added) {
        scheduler_idle(&gate->scheduler, &at->scheduled, now);
        set_hold(gate, at, SCHEDULER_HOLDS);
        apply_decisions(gate, now);
    }
    pthread_mutex_unlock(&gate->lock);
}

/* ---- the quiet thread ---- */

void gate_pause(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    atomic_store(&gate->paused, 1);
    scheduler_pause(&gate->scheduler, clock_now());
    apply_decisions(gate, clock_now());
    pthread_mutex_unlock(&gate->lock);
}

uint64_t gate_resume(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    atomic_store(&gate->paused, 0);
    uint64_t turned_away = atomic_exchange(&gate->turned_away, 0);
    scheduler_resume(&gate->scheduler, now);
    apply_decisions(gate, now);
    pthread_mutex_unlock(&gate->lock);
    return turned_away ? turned_away : UINT64_MAX;
}

void gate_stop_between(struct gate *gate, bool on)
{
    pthread_mutex_lock(&gate->lock);
    scheduler_stop_between(&gate->scheduler, on);
    pthread_mutex_unlock(&gate->lock);
}

bool gate_is_between(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    bool between = gate->scheduler.between;
    pthread_mutex_unlock(&gate->lock);
    return between;
}

void gate_turn_away(struct gate *gate)
{
    uint64_t none = 0;
    atomic_compare_exchange_strong(&gate->turned_away, &none, clock_now());
}

void gate_narrow(struct gate *gate, uint64_t ns)
{
    atomic_store(&gate->narrow, ns);
}

/* ---- any thread ---- */

uint32_t gate_level(struct gate *gate, const struct client *client)
{
    pthread_mutex_lock(&gate->lock);
    uint32_t level = client->gate.scheduled.limits.level;
    pthread_mutex_unlock(&gate->lock);
    return level;
}

void gate_note_done(struct gate *gate, struct client *client)
{
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    count_in_flight(gate, client, now);
    apply_decisions(gate, now);
    pthread_mutex_unlock(&gate->lock);
}

static void charge_client(struct gate *gate, struct gate_client *at, uint64_t now)
{
    /* Relaxed: nothing but the sum is read. */
    uint64_t total = atomic_load_explicit(&at->client->usage.gpu_nanoseconds, memory_order_relaxed);
    if (total > at->charged_gpu)
        scheduler_charge(&gate->scheduler, &at->scheduled, total - at->charged_gpu, now);
    at->charged_gpu = total;
}

void gate_charge_usage(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    for (struct gate_client *at = gate->first; at; at = at->next)
        charge_client(gate, at, now);
    apply_decisions(gate, now);
    pthread_mutex_unlock(&gate->lock);
}

void gate_charge_client(struct gate *gate, struct client *client)
{
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    if (client->gate.added)
        charge_client(gate, &client->gate, now);
    apply_decisions(gate, now);
    pthread_mutex_unlock(&gate->lock);
}

void gate_read_usage(struct gate *gate, struct client *client, struct proto_worker_usage *usage)
{
    const struct scheduler_client *scheduled = &client->gate.scheduled;
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    usage->charged = scheduler_charged(&gate->scheduler, scheduled, now);
    usage->leases = scheduled->leases;
    usage->throttled_lease =
        scheduler_throttled(&gate->scheduler, scheduled, SCHEDULER_HOLD_LEASE, now);
    usage->throttled_duty =
        scheduler_throttled(&gate->scheduler, scheduled, SCHEDULER_HOLD_DUTY, now);
    usage->throttled_priority =
        scheduler_throttled(&gate->scheduler, scheduled, SCHEDULER_HOLD_PRIORITY, now);
    pthread_mutex_unlock(&gate->lock);
}

/* ---- the control thread ---- */

static bool may_be_open(const struct gate *gate)
{
    if (gate->scheduler.schedule.mode != PROTO_MODE_CONCURRENT)
        return false;
    const struct gate_client *first = gate->first;
    for (const struct gate_client *at = first; at; at = at->next)
        if (scheduler_has_duty(&at->scheduled) ||
            at->scheduled.limits.level != first->scheduled.limits.level ||
            at->scheduled.accounts.of[0] != first->scheduled.accounts.of[0])
            return false;
    return true;
}

/* Shuts the gate: every client has to ask from now on, and the scheduler learns what is in
 * flight. */
static void shut_gate(struct gate *gate)
{
    if (!gate_is_open(gate))
        return;
    atomic_store(&gate->open, 0);
    /* The submitter may still act on an open gate, but only under the client's lock. */
    for (struct gate_client *at = gate->first; at; at = at->next) {
        client_lock(at->client);
        gate_note_done(gate, at->client);
        pthread_mutex_unlock(&at->client->lock);
    }
}

/* Has every client ask again, except one that the submitter does not know yet. Under the lock. */
static void mark_all_runnable(struct gate *gate, const struct gate_client *newcomer)
{
    for (struct gate_client *at = gate->first; at; at = at->next)
        if (at != newcomer)
            mark_runnable(gate, at);
}

/* Opens the gate if it may be open. newcomer: see mark_all_runnable; or NULL. */
static void reopen_gate(struct gate *gate, const struct gate_client *newcomer)
{
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    bool open = may_be_open(gate);
    for (struct gate_client *at = gate->first; at && open; at = at->next)
        scheduler_idle(&gate->scheduler, &at->scheduled, now);
    mark_all_runnable(gate, newcomer);
    atomic_store(&gate->open, open);
    apply_decisions(gate, now);
    pthread_mutex_unlock(&gate->lock);
}

void gate_open(struct gate *gate)
{
    struct scheduler_schedule schedule;
    memset(gate, 0, sizeof *gate);
    pthread_mutex_init(&gate->lock, NULL);
    scheduler_defaults(&schedule);
    scheduler_open(&gate->scheduler, &schedule, clock_now());
    gate->open = 1;
    gate->narrow = GATE_WIDE;
    gate->next = SCHEDULER_NEVER;
}

void gate_trace_started(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate_trace_begin(gate, clock_now());
    pthread_mutex_unlock(&gate->lock);
}

void gate_trace_stopping(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate_trace_end(gate, clock_now());
    pthread_mutex_unlock(&gate->lock);
}

void gate_close(struct gate *gate)
{
    pthread_mutex_destroy(&gate->lock);
}

uint32_t gate_set_schedule(struct gate *gate, const struct scheduler_schedule *schedule,
                           struct error *why)
{
    shut_gate(gate);
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    uint32_t error = scheduler_set(&gate->scheduler, schedule, now, why);
    if (gate_trace_wanted(&gate->watch))
        gate_trace_look(gate, now);
    pthread_mutex_unlock(&gate->lock);
    reopen_gate(gate, NULL);
    return error;
}

void gate_set_singly(struct gate *gate, bool singly)
{
    pthread_mutex_lock(&gate->lock);
    /* Commands in flight may be several clients': the next worker begins alone. */
    if (!gate->first || !singly)
        atomic_store(&gate->singly, singly);
    pthread_mutex_unlock(&gate->lock);
}

uint32_t gate_add(struct gate *gate, struct client *client, const struct scheduler_limits *limits,
                  const struct scheduler_accounts *accounts, const struct sm_group_set *sm_groups,
                  struct error *why)
{
    struct gate_client *at = &client->gate;
    memset(at, 0, sizeof *at);
    at->client = client;
    at->hold = at->traced_hold = SCHEDULER_HOLDS;
    pthread_mutex_lock(&gate->lock);
    uint64_t now = at->counted_at = clock_now();
    uint32_t error =
        scheduler_add(&gate->scheduler, &at->scheduled, limits, accounts, sm_groups, now, why);
    if (!error) {
        at->added = true;
        set_in_flight_limits(gate, at);
        at->next = gate->first;
        gate->first = at;
    }
    bool open = may_be_open(gate);
    apply_decisions(gate, now);
    pthread_mutex_unlock(&gate->lock);
    if (!open && gate_is_open(gate)) {
        shut_gate(gate);
        /* Attaching the client may still fail; then it is freed at once. */
        reopen_gate(gate, at);
    }
    return error;
}

uint32_t gate_set_limits(struct gate *gate, struct client *client,
                         const struct scheduler_limits *limits,
                         const struct scheduler_accounts *accounts, struct error *why)
{
    shut_gate(gate);
    pthread_mutex_lock(&gate->lock);
    uint32_t error = scheduler_update(&gate->scheduler, &client->gate.scheduled, limits, accounts,
                                      clock_now(), why);
    pthread_mutex_unlock(&gate->lock);
    reopen_gate(gate, NULL);
    return error;
}

uint32_t gate_set_account(struct gate *gate, struct scheduler_account *account, uint32_t request,
                          uint32_t limit, uint32_t duty, struct error *why)
{
    shut_gate(gate);
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    uint32_t error = scheduler_account_set(&gate->scheduler, account, request, limit, now, why);
    if (!error)
        scheduler_account_set_duty(&gate->scheduler, account, duty, now);
    pthread_mutex_unlock(&gate->lock);
    reopen_gate(gate, NULL);
    return error;
}

void gate_set_foreign(struct gate *gate, struct client *client, const struct sm_group_set *foreign)
{
    pthread_mutex_lock(&gate->lock);
    scheduler_set_foreign(&client->gate.scheduled, foreign);
    pthread_mutex_unlock(&gate->lock);
}

void gate_set_sm_groups(struct gate *gate, struct client *client,
                        const struct sm_group_set *sm_groups)
{
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    if (client->gate.added && !sm_group_set_is_empty(sm_groups)) {
        scheduler_place(&gate->scheduler, &client->gate.scheduled, sm_groups, now);
        apply_decisions(gate, now);
    }
    pthread_mutex_unlock(&gate->lock);
}

void gate_remove(struct gate *gate, struct client *client)
{
    struct gate_client *at = &client->gate;
    if (!at->added)
        return;
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    struct gate_client **link = &gate->first;
    while (*link != at)
        link = &(*link)->next;
    *link = at->next;
    if (at->runnable)
        forget_runnable(gate, at);
    set_hold(gate, at, SCHEDULER_HOLDS);
    gate_trace_forget(gate, at, now);
    charge_client(gate, at, now); /* a client that leaves at once must not go uncharged */
    scheduler_remove(&gate->scheduler, &at->scheduled, now);
    at->added = false;
    bool open = may_be_open(gate);
    apply_decisions(gate, now);
    pthread_mutex_unlock(&gate->lock);
    if (open && !gate_is_open(gate))
        reopen_gate(gate, NULL);
}

/* ---- another worker ---- */

bool gate_carry_take(struct gate *gate, struct client *client, struct gate_carried *to)
{
    struct scheduler_client *scheduled = &client->gate.scheduled;
    pthread_mutex_lock(&gate->lock);
    bool added = client->gate.added;
    uint64_t now = clock_now();
    to->count = added ? scheduled->accounts.count : 0;
    if (added)
        carry_client_take(&gate->scheduler, scheduled, now, &to->client);
    for (uint32_t i = 0; i < to->count; i++) {
        to->of[i] = scheduled->accounts.of[i];
        carry_account_take(&gate->scheduler, to->of[i], now, &to->accounts[i]);
    }
    pthread_mutex_unlock(&gate->lock);
    return added;
}

/* Under the lock: the completer charges all clients of the gate, and would charge this one for what
 * is not noted as charged. */
void gate_carry_use(struct gate *gate, struct client *client, uint64_t gpu_nanoseconds)
{
    pthread_mutex_lock(&gate->lock);
    atomic_store_explicit(&client->usage.gpu_nanoseconds, gpu_nanoseconds, memory_order_relaxed);
    client->gate.charged_gpu = gpu_nanoseconds;
    pthread_mutex_unlock(&gate->lock);
}

void gate_carry_give(struct gate *gate, struct client *client, const struct gate_carried *from)
{
    struct gate_client *at = &client->gate;
    pthread_mutex_lock(&gate->lock);
    uint64_t now = clock_now();
    for (uint32_t i = 0; at->added && i < at->scheduled.accounts.count; i++)
        for (uint32_t j = 0; j < from->count; j++) {
            struct scheduler_account *account = at->scheduled.accounts.of[i];
            if (account->number && account->number == from->accounts[j].number)
                carry_account_give(&gate->scheduler, account, &from->accounts[j], now);
        }
    if (at->added)
        carry_client_give(&gate->scheduler, &at->scheduled, &from->client, now);
    pthread_mutex_unlock(&gate->lock);
}

void gate_carry_resume(struct gate *gate, struct client *client)
{
    pthread_mutex_lock(&gate->lock);
    carry_client_resume(&gate->scheduler, &client->gate.scheduled, clock_now());
    pthread_mutex_unlock(&gate->lock);
}

void gate_carry_leave(struct gate *gate, uint64_t account, const struct carry_client *client,
                      const struct carry_account *of_account)
{
    pthread_mutex_lock(&gate->lock);
    carry_client_leave(&gate->scheduler, account, client, of_account, clock_now());
    pthread_mutex_unlock(&gate->lock);
}

void gate_carry_debts(struct gate *gate, const struct debts *debts)
{
    pthread_mutex_lock(&gate->lock);
    debts_give(&gate->scheduler.debts, debts, clock_now());
    pthread_mutex_unlock(&gate->lock);
}

bool gate_carried_debts(struct gate *gate, uint64_t *changes, struct debts *to)
{
    pthread_mutex_lock(&gate->lock);
    bool changed = gate->scheduler.debts.changes != *changes;
    if (changed)
        *to = gate->scheduler.debts;
    *changes = gate->scheduler.debts.changes;
    pthread_mutex_unlock(&gate->lock);
    return changed;
}
