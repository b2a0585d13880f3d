/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/simulate/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* Maximum of steps at one moment: far more than all clients' queues hold. */
#define STEPS_MAX 1000000

uint64_t device_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t device_random_log(uint64_t *state, uint64_t least, uint64_t most)
{
    if (least >= most)
        return least;
    double part = (double)(device_random(state) >> 11) / 9007199254740992.0;
    return (uint64_t)((double)least * exp2(part * log2((double)most / (double)least)));
}

uint32_t device_wait_bucket(uint64_t ns)
{
    double bucket = ns > 1 ? 8.0 * log2((double)ns) : 0;
    return bucket < DEVICE_WAITS - 1 ? (uint32_t)bucket : DEVICE_WAITS - 1;
}

double device_bucket_wait(uint32_t bucket)
{
    return exp2(((double)bucket + 0.5) / 8.0);
}

static uint64_t any_kernel(struct device_client *client, uint64_t left)
{
    (void)left;
    return device_random_log(&client->random, client->shortest, client->longest);
}

void device_open(struct device *device, const struct scheduler_schedule *settings)
{
    memset(device, 0, sizeof *device);
    device->now = 1000000000;
    device->engine_count = 1;
    device->late_random = 1;
    scheduler_open(&device->scheduler, settings, device->now);
}

struct scheduler_account *device_account(struct device *device, uint64_t number)
{
    struct scheduler_account *unused = NULL;
    if (number == 0)
        return NULL;
    for (struct scheduler_account *one = device->accounts; one != device->accounts + DEVICE_CLIENTS;
         one++) {
        if (one->members && one->number == number)
            return one;
        if (!unused && one->members == 0)
            unused = one;
    }
    if (unused)
        scheduler_account_open(unused, number, "the account", device->now);
    return unused;
}

struct device_client *device_add(struct device *device, const struct scheduler_limits *limits,
                                 const struct sm_group_set *sm_groups, uint32_t engine,
                                 uint64_t seed, struct error *why)
{
    uint32_t at = 0;
    while (at < DEVICE_CLIENTS && device->clients[at].present)
        at++;
    if (at == DEVICE_CLIENTS)
        return NULL;
    struct device_client *client = &device->clients[at];
    struct device_client fresh = {.number = at,
                                  .engine = engine,
                                  .random = seed,
                                  .shortest = 1000000,
                                  .longest = 1000000,
                                  .kernel = any_kernel,
                                  .present = true};
    *client = fresh;
    struct scheduler_accounts accounts = {{device->account}, 1};
    if (scheduler_add(&device->scheduler, &client->scheduled, limits,
                      device->account ? &accounts : NULL, sm_groups, device->now, why)) {
        client->present = false;
        return NULL;
    }
    if (at >= device->client_count)
        device->client_count = at + 1;
    if (engine >= device->engine_count)
        device->engine_count = engine + 1;
    return client;
}

/* ---- the device ---- */

static void start_kernel(struct device *device, struct device_engine *engine)
{
    struct device_client *best = NULL;
    uint32_t number = (uint32_t)(engine - device->engines);
    for (uint32_t i = 0; i < device->client_count; i++) {
        struct device_client *client = &device->clients[i];
        if (!client->present || client->engine != number || client->head == client->tail)
            continue;
        uint32_t level = client->scheduled.limits.level;
        if (!best || level < best->scheduled.limits.level ||
            (level == best->scheduled.limits.level && client->served < best->served))
            best = client;
    }
    engine->runs = best;
    if (!best)
        return;
    struct device_kernel *kernel = &best->queue[best->head % DEVICE_QUEUE];
    best->served = ++device->served;
    engine->began = device->now;
    if (device->last[number] && device->last[number] != best)
        engine->began += device->switch_ns;
    device->last[number] = best;
    engine->ends = engine->began + kernel->ns;
    if (engine->began - kernel->submitted_at > best->wait_most)
        best->wait_most = engine->began - kernel->submitted_at;
    if (best->waiting && engine->began > best->unserved_since) {
        uint64_t wait = engine->began - best->unserved_since;
        device->waits[device_wait_bucket(wait)]++;
        if (wait > best->unserved_most)
            best->unserved_most = wait;
    }
    best->waiting = false;
    bool leases = device->scheduler.schedule.mode != PROTO_MODE_CONCURRENT;
    const struct scheduler_client *holder = best->scheduled.lease_group->holder;
    if (leases && holder && holder != &best->scheduled)
        device->overlapped++;
}

/* ---- the end of a kernel, on the device and where the submitter sees it ---- */

static void see_end(struct device *device, struct device_client *client, uint64_t ns)
{
    scheduler_charge(&device->scheduler, &client->scheduled, ns, device->now);
    scheduler_pace(&client->scheduled, 1, ns);
    scheduler_done(&device->scheduler, &client->scheduled, 1, device->now);
}

static void see_later(struct device *device, struct device_client *client, uint64_t ns)
{
    uint64_t at = device->now + device_random(&device->late_random) % device->late_most;
    if (device->unseen_tail - device->unseen_head == DEVICE_UNSEEN)
        abort(); /* far more than clients have in flight */
    if (device->unseen_tail != device->unseen_head) {
        uint64_t before = device->unseen[(device->unseen_tail - 1) % DEVICE_UNSEEN].seen_at;
        at = at > before ? at : before;
    }
    device->unseen[device->unseen_tail++ % DEVICE_UNSEEN] =
        (struct device_unseen){.client = client, .ns = ns, .seen_at = at};
}

static const struct device_unseen *next_unseen(const struct device *device)
{
    return device->unseen_tail == device->unseen_head
               ? NULL
               : &device->unseen[device->unseen_head % DEVICE_UNSEEN];
}

static void end_kernel(struct device *device, struct device_engine *engine)
{
    struct device_client *client = engine->runs;
    uint64_t ns = engine->ends - engine->began;
    client->head++;
    client->kernels++;
    client->ran_ns += ns;
    engine->busy_ns += ns;
    engine->runs = NULL;
    if (client->pending || client->head != client->tail) {
        client->waiting = true;
        client->unserved_since = device->now;
    }
    if (device->late_most)
        see_later(device, client, ns);
    else
        see_end(device, client, ns);
}

/* ---- the submitter ---- */

static void visit(struct device *device, struct device_client *client)
{
    struct scheduler *scheduler = &device->scheduler;
    if (!client->present)
        return;
    if (client->pending == 0) {
        scheduler_idle(scheduler, &client->scheduled, device->now);
        return;
    }
    scheduler_wants(scheduler, &client->scheduled, device->now);
    struct scheduler_answer answer =
        scheduler_may_submit(scheduler, &client->scheduled, device->now);
    uint32_t submitted = 0;
    while (submitted < answer.room && client->pending &&
           client->tail - client->head < DEVICE_QUEUE) {
        struct device_kernel *kernel = &client->queue[client->tail++ % DEVICE_QUEUE];
        uint64_t left = answer.until > device->now ? answer.until - device->now : 0;
        *kernel =
            (struct device_kernel){.ns = client->kernel(client, left), .submitted_at = device->now};
        if (client->pending != UINT64_MAX)
            client->pending--;
        submitted++;
    }
    scheduler_submitted(scheduler, &client->scheduled, submitted, device->now);
    if (client->pending == 0)
        scheduler_idle(scheduler, &client->scheduled, device->now);
    if (submitted && !device->engines[client->engine].runs)
        start_kernel(device, &device->engines[client->engine]);
}

/* Goes on with the clients that the scheduler names. Bounded: a client that is named again and
 * again is a fault of the scheduler. */
static void follow(struct device *device)
{
    for (int i = 0; i < 4 * DEVICE_CLIENTS; i++) {
        struct scheduler_client *named = scheduler_decide(&device->scheduler, device->now);
        if (!named)
            return;
        visit(device, (struct device_client *)named);
    }
}

_Static_assert(offsetof(struct device_client, scheduled) == 0, "visit by the scheduler's client");

void device_work(struct device *device, struct device_client *client, uint64_t kernels)
{
    if (kernels && client->pending == 0 && client->head == client->tail) {
        client->waiting = true;
        client->unserved_since = device->now;
    }
    client->pending = kernels;
    if (kernels == 0 && client->head == client->tail)
        client->waiting = false;
    visit(device, client);
    follow(device);
}

void device_remove(struct device *device, struct device_client *client)
{
    struct device_engine *engine = &device->engines[client->engine];
    bool runs = engine->runs == client;
    if (runs) {
        engine->busy_ns += device->now > engine->began ? device->now - engine->began : 0;
        engine->runs = NULL;
    }
    for (uint32_t i = device->unseen_head; i != device->unseen_tail; i++)
        if (device->unseen[i % DEVICE_UNSEEN].client == client)
            device->unseen[i % DEVICE_UNSEEN].client = NULL;
    scheduler_remove(&device->scheduler, &client->scheduled, device->now);
    client->present = false;
    if (device->last[client->engine] == client)
        device->last[client->engine] = NULL;
    if (runs)
        start_kernel(device, engine);
    follow(device);
}

struct device_client *device_step(struct device *device, uint64_t until)
{
    struct scheduler *scheduler = &device->scheduler;
    struct device_engine *first = NULL;
    uint64_t at = scheduler_next_event(scheduler, device->now);
    device->events++;
    if (device->still++ > STEPS_MAX)
        abort(); /* an event is due and never happens */
    for (uint32_t i = 0; i < device->engine_count; i++) {
        struct device_engine *engine = &device->engines[i];
        if (engine->runs && engine->ends <= at && (!first || engine->ends < first->ends))
            first = engine;
    }
    if (first)
        at = first->ends;
    const struct device_unseen *unseen = next_unseen(device);
    if (unseen && unseen->seen_at <= at) {
        at = unseen->seen_at;
        first = NULL;
    } else {
        unseen = NULL;
    }
    if (min(at, until) > device->now)
        device->still = 0;
    if (at > until) {
        device->now = until;
        return NULL;
    }
    if (at > device->now)
        device->now = at;
    struct device_client *client = NULL;
    if (unseen) {
        client = unseen->client;
        device->unseen_head++;
        if (client)
            see_end(device, client, unseen->ns);
    } else if (first) {
        client = first->runs;
        end_kernel(device, first);
    }
    if (client && !(first && device->late_most))
        visit(device, client);
    follow(device);
    if (first && !first->runs)
        start_kernel(device, first);
    return client;
}

void device_run(struct device *device, uint64_t until)
{
    while (device->now < until)
        device_step(device, until);
}

uint64_t device_had(const struct device *device, const struct device_client *client)
{
    const struct device_engine *engine = &device->engines[client->engine];
    uint64_t runs = 0;
    if (engine->runs == client && device->now > engine->began)
        runs = device->now - engine->began;
    return client->ran_ns + runs;
}

uint64_t device_busy(const struct device *device, uint32_t number)
{
    const struct device_engine *engine = &device->engines[number];
    uint64_t runs = engine->runs && device->now > engine->began ? device->now - engine->began : 0;
    return engine->busy_ns + runs;
}

/* ---- another scheduler ---- */

void device_take(const struct device *device, struct device_carried *to)
{
    memset(to, 0, sizeof *to);
    for (uint32_t i = 0; i < device->client_count; i++) {
        const struct device_client *client = &device->clients[i];
        to->known[i] = client->present;
        if (client->present)
            carry_client_take(&device->scheduler, &client->scheduled, device->now, &to->clients[i]);
    }
    for (uint32_t i = 0; i < DEVICE_CLIENTS; i++)
        if (device->accounts[i].members)
            carry_account_take(&device->scheduler, &device->accounts[i], device->now,
                               &to->accounts[i]);
}

static void lose_work(struct device *device)
{
    for (uint32_t i = 0; i < device->engine_count; i++) {
        struct device_engine *engine = &device->engines[i];
        uint64_t ran = engine->runs ? saturating_sub(device->now, engine->began) : 0;
        if (engine->runs)
            engine->runs->ran_ns += ran;
        engine->busy_ns += ran;
        engine->runs = NULL;
    }
    for (uint32_t i = 0; i < device->client_count; i++) {
        struct device_client *client = &device->clients[i];
        client->head = client->tail;
        client->pending = 0;
        client->waiting = false;
    }
    device->unseen_head = device->unseen_tail;
    memset(device->last, 0, sizeof device->last);
}

/* With the request and the limit that it had. */
static void open_again(struct device *device, struct scheduler_account *account)
{
    const uint32_t request = account->time_request, limit = account->time_limit;
    struct error why;
    scheduler_account_open(account, account->number, "the account", device->now);
    if (scheduler_account_set(&device->scheduler, account, request, limit, device->now, &why))
        abort(); /* they were its own before */
}

void device_hand_over(struct device *device, const struct device_carried *from, uint64_t pause)
{
    const struct scheduler_schedule schedule = device->scheduler.schedule;
    const struct debts debts = device->scheduler.debts;
    struct error why;
    lose_work(device);
    device->now += pause;
    scheduler_open(&device->scheduler, &schedule, device->now);
    device->scheduler.debts = debts;
    for (uint32_t i = 0; i < DEVICE_CLIENTS; i++)
        if (device->accounts[i].members)
            open_again(device, &device->accounts[i]);
    for (uint32_t i = 0; i < device->client_count; i++) {
        struct device_client *client = &device->clients[i];
        const struct scheduler_client before = client->scheduled;
        struct scheduler_account *account = before.accounts.of[0];
        const struct scheduler_accounts accounts = {{account}, 1};
        const bool own = account == &client->scheduled.self;
        const bool known = from->known[i] && from->clients[i].arrived == before.arrived;
        if (!client->present)
            continue;
        if (scheduler_add(&device->scheduler, &client->scheduled, &before.limits,
                          own ? NULL : &accounts, &before.sm_groups, device->now, &why))
            abort(); /* it fitted before */
        if (!own && account->clients == 1 && known)
            carry_account_give(&device->scheduler, account,
                               &from->accounts[account - device->accounts], device->now);
        if (known)
            carry_client_give(&device->scheduler, &client->scheduled, &from->clients[i],
                              device->now);
    }
}
