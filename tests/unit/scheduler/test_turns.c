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
    assert_true(has_turn(b)); /* as a guest, and after a tenth of the quantum by itself */
    device_run(&device, start + 3300 * MS);
    device_work(&device, a, ANY);
    device_run(&device, start + 4000 * MS);
    assert_true(has_turn(b));
    /* A short pause loses nothing. */
    device_work(&device, b, 0);
    device_run(&device, device.now + 40 * MS);
    device_work(&device, b, ANY);
    device_run(&device, device.now + 1000 * MS);
    assert_true(has_turn(b));
}

static void a_turn_is_kept_for_a_short_pause(void **state)
{
    (void)state;
    open_turns(1000 * MS);
    struct device_client *a = arrive(10 * MS), *b = arrive(10 * MS), *c = arrive(10 * MS);
    uint64_t start = device.now;
    device_work(&device, a, 20); /* 200 ms */
    device_work(&device, b, ANY);
    device_work(&device, c, ANY);
    device_run(&device, start + 290 * MS);
    assert_true(has_turn(b));
    device_work(&device, a, ANY);
    device_run(&device, start + 320 * MS); /* b's kernels in flight have ended */
    assert_true(has_turn(a));
    device_run(&device, start + 990 * MS);
    assert_true(has_turn(a));
    device_run(&device, start + 1020 * MS);
    assert_true(has_turn(b)); /* what it had as a guest is no turn of its own */
    device_run(&device, start + 1980 * MS);
    assert_true(has_turn(b));
}

static struct device_client *arrive_for(uint64_t owner, uint64_t kernel)
{
    device.account = device_account(&device, owner);
    struct device_client *client = arrive(kernel);
    device.account = NULL;
    return client;
}

/* A client computes for 30 ms and thinks for 20 ms; alone it has three fifths of the device. */
static void launch_and_think(struct device_client *const *thinkers, int count, uint64_t until)
{
    uint64_t wakes[4] = {0};
    while (device.now < until) {
        uint64_t next = until;
        for (int i = 0; i < count; i++)
            next = wakes[i] < next ? wakes[i] : next;
        struct device_client *ended = device_step(&device, next);
        for (int i = 0; i < count; i++) {
            if (ended == thinkers[i] && !ended->pending && ended->head == ended->tail)
                wakes[i] = device.now + 20 * MS;
            if (wakes[i] > device.now)
                continue;
            wakes[i] = ANY;
            device_work(&device, thinkers[i], 3);
        }
    }
}

static void pauses_cost_a_user_nothing_beyond_them(void **state)
{
    (void)state;
    open_turns(300 * MS);
    struct device_client *one = arrive_for(1, 10 * MS);
    for (int i = 0; i < 4; i++)
        device_work(&device, arrive_for(2, 10 * MS), ANY);
    uint64_t span = 60000 * MS;
    launch_and_think(&one, 1, device.now + span);
    double part = (double)device_had(&device, one) / (double)span;
    print_message("%.3f\n", part);
    assert_true(part > 0.27 && part < 0.33);
}

/* When one of the user's clients pauses, another one has the rest of the turn, and not a turn. */
static void a_user_with_many_clients_has_no_longer_turns(void **state)
{
    (void)state;
    open_turns(300 * MS);
    struct device_client *four[4], *one = arrive_for(1, 10 * MS);
    for (int i = 0; i < 4; i++)
        four[i] = arrive_for(2, 10 * MS);
    device_work(&device, one, ANY);
    uint64_t span = 60000 * MS;
    launch_and_think(four, 4, device.now + span);
    double part = (double)device_had(&device, one) / (double)span;
    print_message("%.3f\n", part);
    assert_true(part > 0.49 && part < 0.55);
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
        cmocka_unit_test(a_turn_is_kept_for_a_short_pause),
        cmocka_unit_test(pauses_cost_a_user_nothing_beyond_them),
        cmocka_unit_test(a_user_with_many_clients_has_no_longer_turns),
        cmocka_unit_test(a_turn_is_shorter_by_the_last_ones_overrun),
        cmocka_unit_test(a_tenth_of_a_turn_is_left_of_any_overrun),
        cmocka_unit_test(turns_need_no_request_and_fit_any_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
