/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * strict and fair over thousands of mixes of clients. Clients' time is counted by the
 * kernels of the simulated device.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>

#include "common/util.h"
#include "tests/programs/simulate/device.h"

#define US  UINT64_C(1000)
#define MS  UINT64_C(1000000)
#define ANY UINT64_MAX /* always more work */

static struct device device;

static void open_mode(enum proto_mode mode, uint64_t lease_ns)
{
    struct scheduler_schedule settings;
    scheduler_defaults(&settings);
    settings.mode = mode;
    settings.lease_ns = lease_ns;
    device_open(&device, &settings);
}

static struct device_client *arrive(uint32_t request, uint32_t limit, uint64_t shortest,
                                    uint64_t longest, uint64_t seed)
{
    struct error why = {0};
    struct scheduler_limits limits = {.request = request, .limit = limit, .duty = PLAN_WHOLE};
    struct device_client *client = device_add(&device, &limits, NULL, 0, seed, &why);
    if (!client) { /* fail_msg() may return for all an analyser knows */
        print_error("%s\n", why.text);
        abort();
    }
    client->shortest = shortest;
    client->longest = longest;
    return client;
}

/* Short kernels, and a long one whenever the lease is about to end. */
static uint64_t long_at_the_end(struct device_client *client, uint64_t left)
{
    (void)client;
    return left < 5 * MS ? 300 * MS : 500 * US;
}

static double points(uint64_t had, uint64_t span, uint32_t fraction)
{
    return 100.0 * (double)had / (double)span - (double)fraction / 100.0;
}

static double size_of(double error)
{
    return error < 0 ? -error : error;
}

/* 10, 20, 33 and 37 %, some of them arriving in the middle of a plan, one submitting long kernels
 * at the end of its leases; lengths of kernels from 20 us to 300 ms. Worst error of a client's
 * cumulated share over 10 plans from its arrival, in points. */
static double strict_mix(uint64_t seed, uint64_t lease, uint64_t longest)
{
    static const uint32_t fractions[4] = {1000, 2000, 3300, 3700};
    struct device_client *clients[4];
    uint64_t came[4], random = seed, plan = lease * 20;
    double worst = 0;
    open_mode(PROTO_MODE_STRICT, lease);
    uint32_t cheats = (uint32_t)(device_random(&random) % 4);
    for (int i = 0; i < 4; i++) {
        device_run(&device, device.now + device_random(&random) % (plan / 2));
        uint64_t shortest = device_random_log(&random, 20 * US, longest);
        clients[i] = arrive(fractions[i], PLAN_WHOLE, shortest / 4 + 1,
                            device_random_log(&random, shortest, longest), random);
        if (longest >= 300 * MS && (uint32_t)i == cheats)
            clients[i]->kernel = long_at_the_end;
        came[i] = device.now;
        device_work(&device, clients[i], ANY);
    }
    for (int i = 0; i < 4; i++) {
        device_run(&device, came[i] + 10 * plan);
        double error = size_of(points(device_had(&device, clients[i]), 10 * plan, fractions[i]));
        worst = error > worst ? error : worst;
    }
    assert_int_equal(device.overlapped, 0);
    return worst;
}

static void strict_shares_are_within_a_point(void **state)
{
    (void)state;
    double worst = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        double error = strict_mix(seed, 250 * MS, 300 * MS);
        if (error > 1.0)
            fail_msg("seed %lu: a share is %.3f points off", seed, error);
        worst = error > worst ? error : worst;
    }
    print_message("worst share of 400 mixes: %.3f points off\n", worst);
}

static void strict_shares_hold_with_short_leases(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        double error = strict_mix(seed, 5 * MS, 2 * MS);
        if (error > 1.0)
            fail_msg("seed %lu: a share is %.3f points off", seed, error);
    }
}

/* At every plan's end a strict client has had its share of all plans so far, but for what is
 * shorter than the shortest lease; and never more. Kernels divide every lease. */
static void strict_carries_remainders_over(void **state)
{
    (void)state;
    static const uint32_t fractions[] = {3300, 3333, 1, 7, 1234, 2125};
    struct device_client *clients[6];
    open_mode(PROTO_MODE_STRICT, 250 * MS);
    uint64_t start = device.now, plan = 5000 * MS;
    for (int i = 0; i < 6; i++) {
        clients[i] = arrive(fractions[i], PLAN_WHOLE, 10 * US, 10 * US, 1);
        device_work(&device, clients[i], ANY);
    }
    for (uint64_t plans = 1; plans <= 40; plans++) {
        device_run(&device, start + plans * plan);
        for (int i = 0; i < 6; i++) {
            uint64_t due = plans * plan * fractions[i] / PLAN_WHOLE;
            uint64_t had = device_had(&device, clients[i]);
            uint64_t lease = min(max(plan * fractions[i] / PLAN_WHOLE, 5 * MS), 250 * MS);
            if (had > due + lease + 100 * US || had + 2 * lease + 10 * MS < due)
                fail_msg("%lu plans of client %d: had %lu ns of %lu", plans, i, had, due);
        }
    }
}

/* A lone client of half of the time: spread, not in one piece, and the rest idle. */
static void strict_leaves_the_rest_idle(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT, 250 * MS);
    struct device_client *half = arrive(5000, PLAN_WHOLE, MS, MS, 1);
    device_work(&device, half, ANY);
    device_run(&device, device.now + 50000 * MS);
    assert_true(size_of(points(device_had(&device, half), 50000 * MS, 5000)) < 0.1);
    assert_true(half->unserved_most < 260 * MS);
    /* Clients without a request share the rest. */
    struct device_client *rest[2] = {arrive(0, PLAN_WHOLE, MS, MS, 2),
                                     arrive(0, PLAN_WHOLE, MS, MS, 3)};
    uint64_t before = device_had(&device, half), at = device.now;
    device_work(&device, rest[0], ANY);
    device_work(&device, rest[1], ANY);
    device_run(&device, at + 50000 * MS);
    assert_true(size_of(points(device_had(&device, half) - before, 50000 * MS, 5000)) < 1.0);
    assert_true(size_of(points(device_had(&device, rest[0]), 50000 * MS, 2500)) < 1.0);
    assert_true(size_of(points(device_had(&device, rest[1]), 50000 * MS, 2500)) < 1.0);
}

/* Without a request there are leases of what the requests leave, in turn with all who share it (in
 * fair, those with a request, too): a wait of sharers / rest leases at most. Nothing where
 * nothing is left. */
static void left_for(int mode, uint32_t rest, unsigned count)
{
    enum { LEASE_MS = 250, SECONDS = 100 };
    struct device_client *none[3];
    open_mode(mode, LEASE_MS * MS);
    device_work(&device, arrive(5000, PLAN_WHOLE, MS, MS, 1), ANY);
    device_work(&device, arrive(5000 - rest, PLAN_WHOLE, MS, MS, 2), ANY);
    for (unsigned i = 0; i < count; i++) {
        none[i] = arrive(0, PLAN_WHOLE, MS, MS, 3 + i);
        device_work(&device, none[i], ANY);
    }
    device_run(&device, device.now + SECONDS * 1000 * MS);
    unsigned sharers = mode == PROTO_MODE_FAIR ? count + 2 : count;
    for (unsigned i = 0; i < count; i++) {
        uint64_t had = device_had(&device, none[i]);
        if (!rest) {
            assert_int_equal(had, 0);
            continue;
        }
        uint64_t most = ((uint64_t)sharers * PLAN_WHOLE + rest - 1) / rest * LEASE_MS;
        if (none[i]->unserved_most > most * MS)
            fail_msg("mode %d, %u without a request, %u of 10000 left: waits %lu ms and not %lu",
                     mode, count, rest, none[i]->unserved_most / MS, most);
        assert_true(size_of(points(had, SECONDS * 1000 * MS, rest / sharers)) < 0.3);
    }
}

static void clients_without_a_request_get_the_rest(void **state)
{
    (void)state;
    for (int mode = PROTO_MODE_STRICT; mode <= PROTO_MODE_FAIR; mode++)
        for (uint32_t rest = 0; rest <= 3000; rest += 500)
            for (unsigned count = 1; count <= 3; count++)
                left_for(mode, rest, count);
}

/* Two equal clients; one starts a 300 ms kernel at the end of each of its leases. */
static void overrun_is_debt(void **state)
{
    (void)state;
    for (int mode = PROTO_MODE_STRICT; mode <= PROTO_MODE_FAIR; mode++) {
        open_mode(mode, 250 * MS);
        struct device_client *cheat = arrive(5000, PLAN_WHOLE, MS, MS, 1);
        struct device_client *honest = arrive(5000, PLAN_WHOLE, MS, MS, 2);
        cheat->kernel = long_at_the_end;
        device_work(&device, cheat, ANY);
        device_work(&device, honest, ANY);
        device_run(&device, device.now + 100000 * MS);
        assert_true(cheat->kernels > 100);
        assert_true(size_of(points(device_had(&device, cheat), 100000 * MS, 5000)) < 0.6);
        assert_true(size_of(points(device_had(&device, honest), 100000 * MS, 5000)) < 0.6);
    }
}

/* Idle time too: two clients without requests. */
static void overrun_of_idle_time_is_paid_back(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR, 250 * MS);
    struct device_client *cheat = arrive(0, PLAN_WHOLE, MS, MS, 1);
    struct device_client *honest = arrive(0, PLAN_WHOLE, MS, MS, 2);
    cheat->kernel = long_at_the_end;
    device_work(&device, cheat, ANY);
    device_work(&device, honest, ANY);
    device_run(&device, device.now + 100000 * MS);
    assert_true(size_of(points(device_had(&device, cheat), 100000 * MS, 5000)) < 0.6);
}

/* Kernels so short that the whole in-flight limit is let through at the end of a lease, and long
 * ones then. */
static uint64_t many_long_ones(struct device_client *client, uint64_t left)
{
    (void)client;
    return left < 3 * MS ? 300 * MS : 20 * US;
}

/* Work in flight can't be taken back, an in-flight limit of long kernels least of all. A client
 * that is kept from its share by that, for longer than a plan, is given it afterwards. */
static void overrun_by_many_long_kernels_is_made_good(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT, 250 * MS);
    struct device_client *cheat = arrive(5000, PLAN_WHOLE, MS, MS, 1);
    struct device_client *honest = arrive(3000, PLAN_WHOLE, MS, MS, 2);
    struct device_client *small = arrive(1000, PLAN_WHOLE, MS, MS, 3);
    cheat->kernel = many_long_ones;
    device_work(&device, cheat, ANY);
    device_work(&device, honest, ANY);
    device_work(&device, small, ANY);
    device_run(&device, device.now + 1000000 * MS);
    print_message("50 %%: %.2f, 30 %%: %.2f, 10 %%: %.2f points off; waited for %.1f s\n",
                  points(device_had(&device, cheat), 1000000 * MS, 5000),
                  points(device_had(&device, honest), 1000000 * MS, 3000),
                  points(device_had(&device, small), 1000000 * MS, 1000),
                  (double)honest->unserved_most / 1e9);
    assert_true(size_of(points(device_had(&device, honest), 1000000 * MS, 3000)) < 1.0);
    assert_true(size_of(points(device_had(&device, small), 1000000 * MS, 1000)) < 1.0);
}

static void a_lease_is_not_extended_by_late_submissions(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT, 250 * MS);
    struct device_client *client = arrive(5000, PLAN_WHOLE, 10 * MS, 10 * MS, 1);
    struct scheduler *scheduler = &device.scheduler;
    uint64_t start = device.now;
    struct scheduler_client *scheduled = &client->scheduled;
    scheduler_wants(scheduler, scheduled, start);
    struct scheduler_answer answer = scheduler_may_submit(scheduler, scheduled, start);
    assert_int_equal(answer.until, start + 250 * MS);
    scheduler_submitted(scheduler, scheduled, 1, start);
    scheduler_pace(scheduled, 1, 10 * MS);
    scheduler_done(scheduler, scheduled, 1, start + 10 * MS);
    /* A nanosecond before the end one is accepted, with which the end stays where it was. */
    uint64_t late = start + 250 * MS - 1;
    answer = scheduler_may_submit(scheduler, scheduled, late);
    assert_int_equal(answer.room, 1);
    assert_int_equal(answer.until, start + 250 * MS);
    scheduler_submitted(scheduler, scheduled, 1, late);
    answer = scheduler_may_submit(scheduler, scheduled, late);
    assert_int_equal(answer.room, 0);
    assert_int_equal(answer.until, start + 250 * MS);
    assert_int_equal(scheduler_may_submit(scheduler, scheduled, late + 1).room, 0);
    /* 60 ms later it is done; 310 ms are charged. */
    scheduler_pace(scheduled, 1, 60 * MS);
    scheduler_done(scheduler, scheduled, 1, start + 310 * MS);
    assert_int_equal(scheduled->charged_ns, 310 * MS);
    answer = scheduler_may_submit(scheduler, scheduled, start + 310 * MS);
    assert_int_equal(answer.room, 0);
    assert_int_equal(answer.until, start + 620 * MS);
    assert_int_equal(scheduler_may_submit(scheduler, scheduled, start + 620 * MS - 1).room, 0);
    assert_true(scheduler_may_submit(scheduler, scheduled, start + 620 * MS).room > 0);
}

/* The in-flight limit falls towards the end of a lease: 128 kernels of 10 ms, which no bound in
 * time keeps from being in flight here, would overrun by more than a second. Two leases in a row
 * are within the rules. */
static void work_up_to_the_in_flight_limit_does_not_overrun(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR, 250 * MS);
    device.scheduler.schedule.in_flight_limit_ns = 0;
    struct device_client *a = arrive(5000, PLAN_WHOLE, 10 * MS, 10 * MS, 1);
    struct device_client *b = arrive(5000, PLAN_WHOLE, 10 * MS, 10 * MS, 2);
    device_work(&device, a, ANY);
    device_work(&device, b, ANY);
    device_run(&device, device.now + 20000 * MS);
    assert_true(a->unserved_most < 520 * MS);
    assert_true(b->unserved_most < 520 * MS);
}

static uint32_t room_5_ms_before_the_end(struct device_client *client)
{
    struct scheduler *scheduler = &device.scheduler;
    struct scheduler_client *scheduled = &client->scheduled;
    scheduler_wants(scheduler, scheduled, device.now);
    uint64_t end = scheduler_may_submit(scheduler, scheduled, device.now).until;
    scheduler_submitted(scheduler, scheduled, SCHEDULER_TESTED_ENOUGH, device.now);
    scheduler_done(scheduler, scheduled, SCHEDULER_TESTED_ENOUGH, device.now);
    return scheduler_may_submit(scheduler, scheduled, end - 5 * MS).room;
}

/* One of the commands takes 100 ms, the others take 1 ms each; then only short ones come. */
static void have_long_commands(struct device_client *client, uint32_t commands, int times)
{
    struct scheduler_client *scheduled = &client->scheduled;
    scheduler_pace(scheduled, 8, 8 * MS);
    for (int i = 0; i < times; i++)
        scheduler_pace(scheduled, commands, (commands + 99) * MS);
    for (int i = 0; i < 300; i++)
        scheduler_pace(scheduled, 1, MS);
}

/* All in flight but one may be as long as those; then they end in time. */
static void long_commands_that_came_together_are_expected_again(void **state)
{
    (void)state;
    for (uint32_t commands = 1; commands <= 4; commands += 3) {
        open_mode(PROTO_MODE_STRICT, 50 * MS);
        struct device_client *client = arrive(5000, PLAN_WHOLE, MS, MS, 1);
        have_long_commands(client, commands, 2);
        assert_int_equal(room_5_ms_before_the_end(client), 1);
    }
}

/* Otherwise the device would idle between short ones for ten plans. */
static void a_long_command_that_came_alone_is_forgotten(void **state)
{
    (void)state;
    for (uint32_t commands = 1; commands <= 4; commands += 3) {
        open_mode(PROTO_MODE_STRICT, 50 * MS);
        struct device_client *client = arrive(5000, PLAN_WHOLE, MS, MS, 1);
        have_long_commands(client, commands, 1);
        assert_int_equal(room_5_ms_before_the_end(client), 5);
    }
}

/* A client that changes what it does has as many in flight as others, twenty plans later. */
static void long_commands_are_expected_for_ten_plans(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT, 50 * MS);
    struct device_client *client = arrive(5000, PLAN_WHOLE, MS, MS, 1);
    have_long_commands(client, 1, 2);
    uint64_t start = device.now;
    device_work(&device, client, ANY);
    device_run(&device, start + 9900 * MS);
    assert_true(client->scheduled.pair.before_ns > 90 * MS);
    device_run(&device, start + 21000 * MS);
    assert_true(max(client->scheduled.pair.before_ns, client->scheduled.pair.lately_ns) <= MS);
}

/* ---- fair ---- */

/* Fair's promise: water filled equally over those who want it, up to each limit. */
static void expected_shares(const uint32_t *requests, const uint32_t *limits, int count,
                            double *expected)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += expected[i] = requests[i];
    for (double idle = PLAN_WHOLE - sum; idle > 0.01;) {
        int open = 0;
        for (int i = 0; i < count; i++)
            open += expected[i] < limits[i];
        if (open == 0)
            return;
        double each = idle / open;
        for (int i = 0; i < count; i++) {
            double more = limits[i] - expected[i];
            more = more > each ? each : more;
            expected[i] += more;
            idle -= more;
        }
    }
}

static void fair_gives_requests_and_splits_the_rest_equally(void **state)
{
    (void)state;
    uint64_t random = 42, plans = 20;
    for (int mix = 0; mix < 300; mix++) {
        uint32_t requests[6], limits[6], left = PLAN_WHOLE;
        struct device_client *clients[6];
        double expected[6], total = 0;
        int count = 2 + (int)(device_random(&random) % 5);
        open_mode(PROTO_MODE_FAIR, 20 * MS);
        uint64_t span = plans * device.scheduler.plan.length_ns, start = device.now;
        for (int i = 0; i < count; i++) {
            requests[i] = (uint32_t)(device_random(&random) % (left / 2 + 1));
            left -= requests[i];
            limits[i] =
                requests[i] + (uint32_t)(device_random(&random) % (PLAN_WHOLE - requests[i] + 1));
            limits[i] = limits[i] < 100 || device_random(&random) % 2 ? PLAN_WHOLE : limits[i];
            clients[i] = arrive(requests[i], limits[i], 20 * US,
                                device_random_log(&random, 20 * US, 10 * MS), random);
            device_work(&device, clients[i], ANY);
        }
        expected_shares(requests, limits, count, expected);
        device_run(&device, start + span);
        for (int i = 0; i < count; i++) {
            uint64_t had = device_had(&device, clients[i]);
            double share = 100.0 * (double)had / (double)span;
            total += expected[i];
            if (share < requests[i] / 100.0 - 1.0)
                fail_msg("mix %d: %.2f %% is less than its request %.2f %%", mix, share,
                         requests[i] / 100.0);
            if (limits[i] < PLAN_WHOLE && share > limits[i] / 100.0 + 100.0 * 10e6 / (double)span)
                fail_msg("mix %d: %.2f %% is more than its limit %.2f %%", mix, share,
                         limits[i] / 100.0);
            if (size_of(share - expected[i] / 100.0) > 1.5)
                fail_msg("mix %d: %.2f %% where %.2f %% is fair", mix, share, expected[i] / 100.0);
        }
        double busy = (double)device_busy(&device, 0) / (double)span;
        if (busy < 0.97 * total / PLAN_WHOLE)
            fail_msg("mix %d: busy %.3f of %.3f", mix, busy, total / PLAN_WHOLE);
    }
}

/* A client alone, with a limit of a tenth: a lease, and then it waits until that is a tenth. */
static void a_limit_is_spread_over_the_plan(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR, 250 * MS);
    struct device_client *limited = arrive(0, 1000, MS, MS, 1);
    device_work(&device, limited, ANY);
    uint64_t start = device.now;
    /* A quarter of a lease in advance, and what is queued beyond its end. */
    device_run(&device, start + 300 * MS);
    assert_in_range(device_had(&device, limited), 60 * MS, 100 * MS);
    device_run(&device, start + 2400 * MS);
    assert_in_range(device_had(&device, limited), 240 * MS, 310 * MS);
    device_run(&device, start + 50000 * MS);
    assert_in_range(device_had(&device, limited), 4900 * MS, 5276 * MS);
}

static void fair_splits_idle_time_in_three(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR, 250 * MS);
    uint64_t start = device.now;
    static const uint32_t requests[3] = {4000, 1000, 0};
    struct device_client *clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = arrive(requests[i], PLAN_WHOLE, 20 * US, 20 * MS, (uint64_t)i);
        device_work(&device, clients[i], ANY);
    }
    device_run(&device, start + 50000 * MS);
    for (int i = 0; i < 3; i++)
        assert_true(
            size_of(points(device_had(&device, clients[i]), 50000 * MS, requests[i] + 1667)) < 1.5);
}

/* 25 % and 75 %, one of them idle half of the time: the device is not. */
static void fair_keeps_the_device_busy(void **state)
{
    (void)state;
    for (uint64_t half = 3 * MS; half < 5000 * MS; half *= 7) {
        open_mode(PROTO_MODE_FAIR, 250 * MS);
        uint64_t start = device.now;
        struct device_client *steady = arrive(2500, PLAN_WHOLE, 100 * US, MS, 1);
        struct device_client *other = arrive(7500, PLAN_WHOLE, 100 * US, MS, 2);
        device_work(&device, steady, ANY);
        for (uint64_t at = start; at < start + 60000 * MS; at += 2 * half) {
            device_work(&device, other, ANY);
            device_run(&device, at + half);
            device_work(&device, other, 0);
            device_run(&device, at + 2 * half);
        }
        double busy = (double)device_busy(&device, 0) / (double)(device.now - start);
        if (busy < 0.97)
            fail_msg("busy %.4f when idle for %lu ms at a time", busy, half / MS);
        double share = (double)device_had(&device, steady) / (double)(device.now - start);
        if (share < 0.25 - 0.01)
            fail_msg("the steady one had %.4f when the other was idle for %lu ms", share,
                     half / MS);
    }
}

/* A client that was away comes back to its share, not to time that it did not use. */
static void idleness_is_not_saved_up(void **state)
{
    (void)state;
    for (int mode = PROTO_MODE_STRICT; mode <= PROTO_MODE_FAIR; mode++) {
        open_mode(mode, 250 * MS);
        struct device_client *steady = arrive(5000, PLAN_WHOLE, MS, MS, 1);
        struct device_client *away = arrive(5000, PLAN_WHOLE, MS, MS, 2);
        struct device_client *without = arrive(0, PLAN_WHOLE, MS, MS, 3);
        device_work(&device, steady, ANY);
        device_work(&device, without, ANY);
        device_run(&device, device.now + 100000 * MS);
        uint64_t before = device_had(&device, steady), at = device.now;
        device_work(&device, away, ANY);
        device_run(&device, at + 5000 * MS);
        double had = points(device_had(&device, steady) - before, 5000 * MS, 0);
        if (had < 44.0)
            fail_msg("the steady client had %.1f %% after the other came back", had);
    }
}

static void idle_time_is_not_saved_up(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR, 250 * MS);
    struct device_client *steady = arrive(0, PLAN_WHOLE, MS, MS, 1);
    struct device_client *away = arrive(0, PLAN_WHOLE, MS, MS, 2);
    struct device_client *limited = arrive(0, 1000, MS, MS, 3);
    device_work(&device, steady, ANY);
    device_work(&device, limited, ANY);
    device_run(&device, device.now + 100000 * MS);
    uint64_t before = device_had(&device, steady), at = device.now;
    device_work(&device, away, ANY);
    device_run(&device, at + 5000 * MS);
    double had = points(device_had(&device, steady) - before, 5000 * MS, 0);
    if (had < 40.0)
        fail_msg("the steady client had %.1f %% after the other came back", had);
    /* A client that was held at a limit does not catch up when the limit is lifted. */
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    struct error why = {0};
    assert_int_equal(
        scheduler_update(&device.scheduler, &limited->scheduled, &limits, NULL, device.now, &why),
        0);
    before = device_had(&device, limited), at = device.now;
    device_run(&device, at + 6000 * MS);
    had = points(device_had(&device, limited) - before, 6000 * MS, 0);
    if (had > 38.0)
        fail_msg("the client that was limited had %.1f %% of what three share", had);
}

/* Thousands of mixes with arrivals and departures: the promises that hold at any moment. */
static void every_client_gets_a_lease_in_time(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int mix = 0; mix < 1000; mix++) {
        int mode = PROTO_MODE_STRICT + mix % 3;
        open_mode(mode, 5 * MS);
        for (int i = 0; i < 25; i++) {
            uint32_t at = (uint32_t)(device_random(&random) % 12);
            struct device_client *client = &device.clients[at];
            if (client->present && device_random(&random) % 3 == 0) {
                device_remove(&device, client);
            } else if (client->present) {
                device_work(&device, client, client->pending ? 0 : ANY);
            } else {
                struct scheduler_limits limits = {.request =
                                                      (uint32_t)(device_random(&random) % 900),
                                                  .limit = PLAN_WHOLE,
                                                  .duty = PLAN_WHOLE};
                struct error why = {0};
                client = device_add(&device, &limits, NULL, 0, random, &why);
                assert_non_null(client); /* 12 of at most 9 % leave room */
                client->shortest = 100 * US;
                client->longest = 2 * MS;
                device_work(&device, client, ANY);
            }
            device_run(&device, device.now + device_random(&random) % (20 * MS));
        }
        device_run(&device, device.now + 1000 * MS);
        assert_int_equal(device.overlapped, 0);
        for (uint32_t i = 0; i < device.client_count; i++) {
            struct device_client *client = &device.clients[i];
            if (!client->present ||
                (mode != PROTO_MODE_TURNS && client->scheduled.limits.request < 50))
                continue;
            uint64_t most = mode == PROTO_MODE_TURNS ? 40000 * MS : 1100 * MS;
            if (client->waiting && client->pending && device.now - client->unserved_since > most)
                fail_msg("mix %d: client %u of %u waits for %lu ms", mix, i,
                         client->scheduled.limits.request,
                         (device.now - client->unserved_since) / MS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict_shares_are_within_a_point),
        cmocka_unit_test(strict_shares_hold_with_short_leases),
        cmocka_unit_test(strict_carries_remainders_over),
        cmocka_unit_test(strict_leaves_the_rest_idle),
        cmocka_unit_test(clients_without_a_request_get_the_rest),
        cmocka_unit_test(overrun_is_debt),
        cmocka_unit_test(overrun_of_idle_time_is_paid_back),
        cmocka_unit_test(overrun_by_many_long_kernels_is_made_good),
        cmocka_unit_test(a_lease_is_not_extended_by_late_submissions),
        cmocka_unit_test(work_up_to_the_in_flight_limit_does_not_overrun),
        cmocka_unit_test(long_commands_that_came_together_are_expected_again),
        cmocka_unit_test(a_long_command_that_came_alone_is_forgotten),
        cmocka_unit_test(long_commands_are_expected_for_ten_plans),
        cmocka_unit_test(fair_gives_requests_and_splits_the_rest_equally),
        cmocka_unit_test(a_limit_is_spread_over_the_plan),
        cmocka_unit_test(fair_splits_idle_time_in_three),
        cmocka_unit_test(fair_keeps_the_device_busy),
        cmocka_unit_test(idleness_is_not_saved_up),
        cmocka_unit_test(idle_time_is_not_saved_up),
        cmocka_unit_test(every_client_gets_a_lease_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
