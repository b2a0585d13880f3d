/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Thousands of random mixes: any mode, lease and precision, clients that come, go, have work and
 * have none, at any moment. Each client's time is counted by the kernels of the simulated device,
 * and held against what the contract (scheduler.h) promises of requests, limits, idle time and
 * waits, by sums of the clients' wishes alone: the scheduler's own plan, credit and charges are not
 * asked.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/programs/simulate/device.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

enum { CLIENTS = 8, PLANS = 12, MIXES = 1000 };

struct wish {
    struct device_client *client; /* NULL: not there */
    uint32_t request, limit;
    uint64_t came, wants_since; /* the latter 0: has no work */
    uint64_t had_since;         /* device time that it had had when it began to want */
    bool steady;                /* always has work, without a limit */
};

struct mix {
    uint64_t seed, random;
    struct scheduler_schedule settings;
    uint64_t plan, start;
    uint64_t kernel;   /* the longest of all clients' */
    uint32_t pauses;   /* how often a client stopped having work */
    uint32_t arrivals; /* or began to have some */
    uint64_t kept;     /* time in which nothing ran, for a client that paused and was owed */
    struct wish wishes[CLIENTS];
};

static struct device device;
static struct mix mix;
static double closest[6]; /* to what is allowed, of all mixes: 1 is the bound */

static uint64_t below(uint64_t bound)
{
    return device_random(&mix.random) % bound;
}

/* A lease that ends late is late by what was in flight: two commands of a length that is not known,
 * or what a client that was alone may queue beyond the end. */
static uint64_t overrun(void)
{
    uint64_t alone = mix.settings.lease_ns / 10;
    return 2 * mix.kernel + (alone > MS ? alone : MS);
}

static void judge(int what, double value, double bound, int at, const char *text)
{
    closest[what] = value / bound > closest[what] ? value / bound : closest[what];
    if (value > bound)
        fail_msg("mix %lu, mode %d, lease %.1f ms, plan %.1f ms, client %d (%u to %u): %s: %.3f ms "
                 "where %.3f are allowed",
                 mix.seed, (int)mix.settings.mode, (double)mix.settings.lease_ns / 1e6,
                 (double)mix.plan / 1e6, at, at < 0 ? 0 : mix.wishes[at].request,
                 at < 0 ? 0 : mix.wishes[at].limit, text, value / 1e6, bound / 1e6);
}

/* ---- what is promised ---- */

/* Never more than the limit since it came, but for this plan's part of it and a late end. */
static void check_limit(int at)
{
    const struct wish *wish = &mix.wishes[at];
    enum proto_mode mode = mix.settings.mode;
    uint32_t most = mode == PROTO_MODE_STRICT && wish->request ? wish->request : wish->limit;
    if (!wish->client || mode == PROTO_MODE_TURNS)
        return;
    double had = (double)device_had(&device, wish->client);
    double due = (double)(device.now - wish->came + mix.plan) * most / PLAN_WHOLE;
    judge(0, had, due + (double)overrun(), at, "more than its limit");
}

/* A client that has had work for a while had its request of that, but for the plan in which it
 * began. */
static void check_request(int at)
{
    const struct wish *wish = &mix.wishes[at];
    if (!wish->client || !wish->wants_since || mix.settings.mode == PROTO_MODE_TURNS)
        return;
    double had = (double)(device_had(&device, wish->client) - wish->had_since);
    double due = (double)(device.now - wish->wants_since) * wish->request / PLAN_WHOLE;
    double plans = (double)mix.plan * wish->request / PLAN_WHOLE;
    double shortest = (double)mix.settings.lease_ns / 10;
    judge(1, due - had, plans + shortest + (double)overrun(), at, "less than its request");
}

/* A client that has a request has a lease every plan, later only for what it owes and by another's
 * lease. In turns nobody is passed over: each of the others has one turn at most before it. */
static void check_wait(int at)
{
    const struct wish *wish = &mix.wishes[at];
    if (!wish->client || !wish->client->waiting || !wish->wants_since)
        return;
    double wait = (double)(device.now - wish->client->unserved_since), late = (double)overrun();
    if (mix.settings.mode == PROTO_MODE_TURNS)
        judge(2, wait, (CLIENTS - 1) * ((double)mix.settings.quantum_ns + late), at,
              "waits for its turn");
    else if (wish->request >= 100)
        judge(3, wait,
              (double)(mix.plan + mix.settings.lease_ns) + late * PLAN_WHOLE / wish->request, at,
              "waits for its lease");
}

/* The device idles only while a lease is given back: a moment for each client that stopped. In fair
 * it is also kept for a moment for one that paused and is owed, so that its lease is not another's
 * when it comes back. */
static void check_idle(uint64_t busy_from)
{
    uint64_t chosen = mix.settings.lease_ns / 50 < MS ? mix.settings.lease_ns / 50 : MS;
    if (mix.settings.mode == PROTO_MODE_TURNS)
        chosen = mix.settings.quantum_ns / 600;
    double idle = (double)(device.now - mix.start) - (double)(device_busy(&device, 0) - busy_from);
    judge(5, (double)mix.kept, (double)(mix.pauses * mix.settings.lease_ns) / 2 + US, -1,
          "kept for clients that paused");
    idle -= (double)mix.kept;
    judge(4, idle, (double)(mix.pauses * (chosen + US) + US), -1, "idle beside somebody with work");
}

static void check_all(void)
{
    assert_int_equal(device.overlapped, 0);
    for (int at = 0; at < CLIENTS; at++) {
        check_limit(at);
        check_request(at);
        check_wait(at);
    }
}

/* ---- what happens ---- */

static void begin_work(struct wish *wish)
{
    wish->wants_since = device.now;
    wish->had_since = device_had(&device, wish->client);
    mix.arrivals++;
    device_work(&device, wish->client, UINT64_MAX);
}

static void come(struct wish *wish, bool steady)
{
    struct error why = {0};
    uint64_t sum = 0;
    memset(wish, 0, sizeof *wish);
    wish->request = below(3) ? (uint32_t)below(4000) : 0;
    wish->limit = below(2) ? PLAN_WHOLE : wish->request + 100 + (uint32_t)below(5000);
    if (steady || wish->limit > PLAN_WHOLE)
        wish->limit = PLAN_WHOLE;
    for (int i = 0; i < CLIENTS; i++)
        sum += mix.wishes[i].client ? mix.wishes[i].request : 0;
    bool fits = sum + wish->request <= PLAN_WHOLE || mix.settings.mode == PROTO_MODE_TURNS;
    struct scheduler_limits limits = {
        .request = wish->request, .limit = wish->limit, .duty = PLAN_WHOLE};
    wish->client = device_add(&device, &limits, NULL, 0, device_random(&mix.random), &why);
    if (fits != (wish->client != NULL))
        fail_msg("mix %lu: requests of %lu and %u: %s", mix.seed, sum, wish->request,
                 fits ? why.text : "taken");
    if (!wish->client)
        return;
    wish->steady = steady;
    wish->came = device.now;
    wish->client->shortest = wish->client->longest =
        device_random_log(&mix.random, 50 * US, mix.kernel);
    if (steady)
        begin_work(wish);
}

static void happen(struct wish *wish)
{
    if (!wish->client) {
        come(wish, false);
    } else if (wish->steady) {
        return;
    } else if (below(5) == 0) {
        mix.pauses++;
        device_remove(&device, wish->client);
        wish->client = NULL;
    } else if (wish->wants_since) {
        mix.pauses++;
        wish->wants_since = 0;
        device_work(&device, wish->client, 0);
    } else {
        begin_work(wish);
    }
}

/* Nobody has a lease, somebody wants one, and the scheduler will look again later. */
static bool is_kept(void)
{
    const struct scheduler_lease_group *lease_group = &device.scheduler.lease_groups[0];
    return !lease_group->holder && !lease_group->in_flight && lease_group->wants_count &&
           lease_group->look_at > device.now;
}

static void run_until(uint64_t until)
{
    while (device.now < until) {
        const uint64_t before = device.now;
        const bool kept = is_kept();
        device_step(&device, until);
        mix.kept += kept ? device.now - before : 0;
    }
}

static void run_mix(uint64_t seed)
{
    static const uint64_t leases[] = {5 * MS, 10 * MS, 20 * MS};
    static const uint32_t precisions[] = {500, 333, 1000, 2500};
    memset(&mix, 0, sizeof mix);
    mix.seed = mix.random = seed;
    scheduler_defaults(&mix.settings);
    mix.settings.mode = PROTO_MODE_STRICT + (enum proto_mode)(seed % 3);
    mix.settings.lease_ns = leases[below(3)];
    mix.settings.precision = precisions[below(4)];
    mix.settings.quantum_ns = device_random_log(&mix.random, 5 * MS, 100 * MS);
    mix.plan = mix.settings.lease_ns * PLAN_WHOLE / mix.settings.precision;
    mix.kernel = mix.settings.lease_ns / 10;
    device_open(&device, &mix.settings);
    bool steady = below(2);
    if (steady)
        come(&mix.wishes[0], true);
    mix.start = device.now;
    while (device.now < mix.start + PLANS * mix.plan) {
        happen(&mix.wishes[below(CLIENTS)]);
        run_until(device.now + below(mix.plan / 2));
        check_all();
    }
    if (steady && mix.settings.mode != PROTO_MODE_STRICT)
        check_idle(0);
}

static void any_mix_keeps_the_promises_of_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3 * MIXES; seed++)
        run_mix(seed);
    print_message("closest to the bounds: limits %.3f, requests %.3f, turns %.3f, leases "
                  "%.3f, idle %.3f, kept %.3f\n",
                  closest[0], closest[1], closest[2], closest[3], closest[4], closest[5]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_mix_keeps_the_promises_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
