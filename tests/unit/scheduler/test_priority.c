/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* concurrent: in-flight limits by priority, and duty. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/programs/simulate/device.h"

#define US  UINT64_C(1000)
#define MS  UINT64_C(1000000)
#define ANY UINT64_MAX

static struct device device;
static struct scheduler_schedule settings;

static void open_concurrent(void)
{
    scheduler_defaults(&settings);
    device_open(&device, &settings);
}

static struct device_client *arrive(uint32_t level, uint32_t duty, uint64_t kernel)
{
    struct error why = {0};
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = duty, .level = level};
    struct device_client *client = device_add(&device, &limits, NULL, 0, 1, &why);
    if (!client) {
        fail_msg("%s", why.text);
        abort();
    }
    client->shortest = client->longest = kernel;
    return client;
}

static void levels_spread_over_the_devices_range(void **state)
{
    (void)state;
    assert_int_equal(scheduler_stream_priority(0, 1, -5, 0), -5);
    assert_int_equal(scheduler_stream_priority(0, 2, -5, 0), -5);
    assert_int_equal(scheduler_stream_priority(1, 2, -5, 0), 0);
    for (uint32_t level = 0; level < 6; level++)
        assert_int_equal(scheduler_stream_priority(level, 6, -5, 0), -5 + (int32_t)level);
    assert_int_equal(scheduler_stream_priority(999, 1000, -5, 0), 0);
    assert_int_equal(scheduler_stream_priority(998, 1000, -5, 0), -1);
    assert_int_equal(scheduler_stream_priority(5000, 1000, -5, 0), 0);
    assert_int_equal(scheduler_stream_priority(3, 7, 0, 0), 0);
    for (uint32_t levels = 1; levels < 300; levels++)
        for (uint32_t level = 1; level < levels; level++)
            assert_true(scheduler_stream_priority(level, levels, -5, 0) >=
                        scheduler_stream_priority(level - 1, levels, -5, 0));
}

/* One urgent client with a kernel now and then beside lower ones with work without end. */
static void urgent_work_waits_for_one_lower_kernel(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (int lower = 1; lower <= 12; lower++) {
        open_concurrent();
        struct device_client *urgent = arrive(0, PLAN_WHOLE, MS), *others[12];
        device_work(&device, urgent, 1);
        for (int i = 0; i < lower; i++) {
            others[i] = arrive(1 + (uint32_t)i % 3, PLAN_WHOLE, MS);
            device_work(&device, others[i], ANY);
        }
        device_run(&device, device.now + 50 * MS);
        uint64_t start = device.now, before = device_busy(&device, 0);
        urgent->wait_most = 0;
        for (int i = 0; i < 500; i++) {
            device_work(&device, urgent, 1);
            device_run(&device, device.now + device_random(&random) % (20 * MS));
            device_run(&device, device.now + 2 * MS);
            uint32_t in_flight = 0;
            for (int at = 0; at < lower; at++)
                in_flight += others[at]->scheduled.in_flight;
            assert_true(in_flight <= settings.low_in_flight_limit);
        }
        if (urgent->wait_most > MS)
            fail_msg("%d lower clients: waited %lu us", lower, urgent->wait_most / US);
        assert_true(device_busy(&device, 0) - before > (device.now - start) * 99 / 100);
        /* The lowest level does not starve: all of them take turns for the slot. */
        for (int i = 0; i < lower; i++)
            assert_true(others[i]->kernels * (uint64_t)lower * 2 > others[0]->kernels);
    }
}

/* The caller may ask for others between a name and the named client's question. */
static void a_named_client_is_not_overtaken(void **state)
{
    (void)state;
    struct scheduler scheduler;
    static struct scheduler_client urgent, low[2];
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    struct error why = {0};
    scheduler_defaults(&settings);
    scheduler_open(&scheduler, &settings, 0);
    assert_int_equal(scheduler_add(&scheduler, &urgent, &limits, NULL, NULL, 0, &why), 0);
    limits.level = 1;
    for (int i = 0; i < 2; i++)
        assert_int_equal(scheduler_add(&scheduler, &low[i], &limits, NULL, NULL, 0, &why), 0);
    scheduler_wants(&scheduler, &urgent, 0);
    for (int i = 0; i < 2; i++)
        scheduler_wants(&scheduler, &low[i], 0);
    uint32_t turns[2] = {0, 0};
    for (uint64_t now = 1; now < 200; now++) {
        /* The first of them asks whenever it can, named or not. */
        for (int i = 0; i < 2; i++) {
            uint32_t room = scheduler_may_submit(&scheduler, &low[i], now).room;
            scheduler_submitted(&scheduler, &low[i], room, now);
            turns[i] += room;
        }
        for (int i = 0; i < 2; i++)
            scheduler_done(&scheduler, &low[i], low[i].in_flight, now);
        while (scheduler_decide(&scheduler, now))
            ;
    }
    assert_in_range(turns[0], turns[1] - 1, turns[1] + 1);
    assert_in_range(turns[0] + turns[1], 150, 200);
}

static void short_kernels_have_a_higher_in_flight_limit(void **state)
{
    (void)state;
    scheduler_defaults(&settings);
    assert_int_equal(settings.linger_ns, 1000 * MS); /* "in the last second", docs/sharing.md */
    assert_int_equal(policy_concurrent_low_limit(&settings, 0), 1);
    assert_int_equal(policy_concurrent_low_limit(&settings, MS), 1);
    assert_int_equal(policy_concurrent_low_limit(&settings, 20 * US), 5);
    assert_int_equal(policy_concurrent_low_limit(&settings, 1), settings.quiet_in_flight_limit);
    open_concurrent();
    struct device_client *urgent = arrive(0, PLAN_WHOLE, MS);
    struct device_client *low = arrive(9, PLAN_WHOLE, 20 * US);
    device_work(&device, low, ANY);
    device_run(&device, device.now + 10 * MS);
    assert_int_equal(low->scheduled.in_flight, settings.quiet_in_flight_limit);
    for (int i = 0; i < 200; i++) {
        device_work(&device, urgent, 1);
        device_run(&device, device.now + 3 * MS);
        assert_true(low->scheduled.in_flight <= 5);
    }
    /* Long after the last urgent work the in-flight limit is as it was; without the client, in
     * full. */
    device_run(&device, device.now + settings.linger_ns + 10 * MS);
    assert_int_equal(low->scheduled.in_flight, settings.quiet_in_flight_limit);
    device_remove(&device, urgent);
    device_run(&device, device.now + 10 * MS);
    assert_int_equal(low->scheduled.in_flight, settings.in_flight_limit);
}

static void lower_clients_go_on_when_urgent_ones_are_silent(void **state)
{
    (void)state;
    open_concurrent();
    struct device_client *urgent = arrive(0, PLAN_WHOLE, 10 * MS);
    struct device_client *a = arrive(1, PLAN_WHOLE, 10 * MS), *b = arrive(2, PLAN_WHOLE, 10 * MS);
    device_work(&device, urgent, 3);
    device_work(&device, a, ANY);
    device_work(&device, b, ANY);
    device_run(&device, device.now + 3000 * MS);
    /* a's kernels are more urgent than b's. */
    assert_true(a->kernels > 200);
    device_work(&device, a, 0);
    device_run(&device, device.now + 5000 * MS);
    assert_true(b->kernels > 200);
}

static void duty_bounds_a_clients_own_device_time(void **state)
{
    (void)state;
    uint64_t random = 11;
    for (int mix = 0; mix < 100; mix++) {
        open_concurrent();
        uint32_t duty = 100 + (uint32_t)(device_random(&random) % 5000);
        struct device_client *bound = arrive(0, duty, device_random_log(&random, 20 * US, 5 * MS));
        device_work(&device, bound, ANY);
        device_run(&device, device.now + 100000 * MS);
        double share = (double)device_had(&device, bound) / 100000e6;
        double beyond = (128 * 5 + 250) / 100000.0;
        assert_true(share < duty / 10000.0 + beyond);
        assert_true(share > duty / 10000.0 - 0.001);
        assert_true(bound->scheduled.throttled_ns[SCHEDULER_HOLD_DUTY] > 40000 * MS);
    }
}

static void time_fractions_do_not_bind(void **state)
{
    (void)state;
    open_concurrent();
    struct error why = {0};
    struct scheduler_limits tenth = {.request = 1000, .limit = 1000, .duty = PLAN_WHOLE};
    struct device_client *client = device_add(&device, &tenth, NULL, 0, 1, &why);
    device_work(&device, client, ANY);
    device_run(&device, device.now + 1000 * MS);
    assert_true(device_had(&device, client) > 990 * MS);
    assert_false(scheduler_time_enforced(&device.scheduler));
    for (int hold = 0; hold < SCHEDULER_HOLDS; hold++)
        assert_int_equal(scheduler_throttled(&device.scheduler, &client->scheduled,
                                             (enum scheduler_hold)hold, device.now),
                         0);
}

/* Two clients that share a lease group don't meet on the device: who has the lease has all of it.
 */
static void levels_do_not_bind_the_holder_of_a_lease(void **state)
{
    (void)state;
    open_concurrent();
    settings.mode = PROTO_MODE_FAIR;
    struct error why = {0};
    assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
    struct device_client *urgent = arrive(0, PLAN_WHOLE, 100 * US);
    struct device_client *low = arrive(5, PLAN_WHOLE, 100 * US);
    device_work(&device, urgent, ANY);
    device_work(&device, low, ANY);
    device_run(&device, device.now + 375 * MS);
    assert_ptr_equal(low->scheduled.lease_group->holder, &low->scheduled);
    assert_in_range(low->scheduled.in_flight, settings.in_flight_limit_ns / (100 * US) - 1,
                    settings.in_flight_limit_ns / (100 * US));
}

/* Named for the room of lower levels, it is found to owe device time: the room is the others'. */
static void a_client_in_debt_keeps_no_room_from_others(void **state)
{
    (void)state;
    open_concurrent();
    struct scheduler *scheduler = &device.scheduler;
    struct scheduler_client *urgent = &arrive(0, PLAN_WHOLE, MS)->scheduled;
    struct scheduler_client *owes = &arrive(5, 100, MS)->scheduled;
    struct scheduler_client *low = &arrive(5, PLAN_WHOLE, MS)->scheduled;
    uint64_t now = device.now;
    scheduler_wants(scheduler, urgent, now);
    scheduler_wants(scheduler, owes, now);
    scheduler_wants(scheduler, low, now);
    assert_int_equal(scheduler_may_submit(scheduler, owes, now).room, 1);
    scheduler_submitted(scheduler, owes, 1, now);
    assert_int_equal(scheduler_may_submit(scheduler, owes, now).hold, SCHEDULER_HOLD_PRIORITY);
    assert_int_equal(scheduler_may_submit(scheduler, low, now).hold, SCHEDULER_HOLD_PRIORITY);
    scheduler_done(scheduler, owes, 1, now += MS);
    assert_ptr_equal(scheduler_decide(scheduler, now), owes);
    scheduler_charge(scheduler, owes, 1000 * MS, now);
    assert_int_equal(scheduler_may_submit(scheduler, owes, now).hold, SCHEDULER_HOLD_DUTY);
    assert_ptr_equal(scheduler_decide(scheduler, now), low);
    assert_int_equal(scheduler_may_submit(scheduler, low, now).room, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_spread_over_the_devices_range),
        cmocka_unit_test(urgent_work_waits_for_one_lower_kernel),
        cmocka_unit_test(a_named_client_is_not_overtaken),
        cmocka_unit_test(short_kernels_have_a_higher_in_flight_limit),
        cmocka_unit_test(lower_clients_go_on_when_urgent_ones_are_silent),
        cmocka_unit_test(duty_bounds_a_clients_own_device_time),
        cmocka_unit_test(levels_do_not_bind_the_holder_of_a_lease),
        cmocka_unit_test(a_client_in_debt_keeps_no_room_from_others),
        cmocka_unit_test(time_fractions_do_not_bind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
