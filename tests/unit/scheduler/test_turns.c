/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/programs/simulate/device.h"

#define MS  UINT64_C(1000000)
#define ANY UINT64_MAX

static struct device device;

static void open_turns(uint64_t quantum)
{
    struct scheduler_schedule settings;
    scheduler_defaults(&settings);
    settings.mode = PROTO_MODE_TURNS;
    settings.quantum_ns = quantum;
    device_open(&device, &settings);
}

static struct device_client *arrive(uint64_t kernel)
{
    struct error why = {0};
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    struct device_client *client = device_add(&device, &limits, NULL, 0, 1, &why);
    if (!client) {
        fail_msg("%s", why.text);
        abort();
    }
    client->shortest = client->longest = kernel;
    return client;
}

static bool has_turn(const struct device_client *client)
{
    return client->scheduled.lease_group->holder == &client->scheduled;
}

static void turns_are_first_come_first_served(void **state)
{
    (void)state;
    struct device_client *clients[5];
    static const int order[5] = {3, 0, 4, 2, 1};
    open_turns(1000 * MS);
    for (int i = 0; i < 5; i++)
        clients[i] = arrive(10 * MS);
    for (int i = 0; i < 5; i++) {
        device_work(&device, clients[order[i]], ANY);
        device_run(&device, device.now + MS);
    }
    uint64_t start = device.now;
    for (int turn = 0; turn < 20; turn++) {
        device_run(&device, start + (uint64_t)turn * 1000 * MS + 500 * MS);
        for (int i = 0; i < 5; i++)
            assert_int_equal(has_turn(clients[order[i]]), i == turn % 5);
    }
    assert_int_equal(device.overlapped, 0);
}

static void a_turn_ends_early_with_its_work(void **state)
{
    (void)state;
    open_turns(30000 * MS);
    struct device_client *a = arrive(10 * MS), *b = arrive(10 * MS);
    uint64_t start = device.now;
    device_work(&device, a, 20); /* 200 ms */
    device_work(&device, b, ANY);
    device_run(&device, start + 230 * MS);
    assert_true(has_turn(a)); /* it may have more in a moment */
    device_run(&device, start + 251 * MS);
    assert_true(has_turn(b));
    /* A short pause loses nothing. */
    device_work(&device, a, ANY);
    device_work(&device, b, 0);
    device_run(&device, device.now + 40 * MS);
    device_work(&device, b, ANY);
    device_run(&device, device.now + 1000 * MS);
    assert_true(has_turn(b));
}

static void a_turn_is_shorter_by_the_last_ones_overrun(void **state)
{
    (void)state;
    open_turns(1000 * MS);
    struct device_client *a = arrive(400 * MS), *b = arrive(100 * MS);
    device_work(&device, a, ANY);
    device_work(&device, b, ANY);
    device_run(&device, device.now + 100000 * MS);
    double share = (double)device_had(&device, a) / 100000e6;
    assert_true(share > 0.48 && share < 0.52);
}

/* A kernel of five turns takes more than the next turn has: nine tenths of that are all it costs.
 */
static void a_tenth_of_a_turn_is_left_of_any_overrun(void **state)
{
    (void)state;
    open_turns(1000 * MS);
    struct device_client *a = arrive(5000 * MS), *b = arrive(100 * MS);
    uint64_t start = device.now;
    device_work(&device, a, 1);
    device_work(&device, b, ANY);
    device_run(&device, start + 4999 * MS);
    device_work(&device, a, ANY);
    a->shortest = a->longest = MS;
    device_run(&device, start + 6001 * MS);
    assert_true(has_turn(a));
    assert_int_equal(device.scheduler.lease_groups[0].lease_ends, start + 6100 * MS);
}

static void turns_need_no_request_and_fit_any_number(void **state)
{
    (void)state;
    open_turns(100 * MS);
    for (int i = 0; i < DEVICE_CLIENTS; i++)
        device_work(&device, arrive(MS), ANY);
    device_run(&device, device.now + 2 * DEVICE_CLIENTS * 100 * MS);
    for (int i = 0; i < DEVICE_CLIENTS; i++)
        assert_in_range(device_had(&device, &device.clients[i]), 190 * MS, 210 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_first_come_first_served),
        cmocka_unit_test(a_turn_ends_early_with_its_work),
        cmocka_unit_test(a_turn_is_shorter_by_the_last_ones_overrun),
        cmocka_unit_test(a_tenth_of_a_turn_is_left_of_any_overrun),
        cmocka_unit_test(turns_need_no_request_and_fit_any_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
