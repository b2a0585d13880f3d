/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Another scheduler goes on with what the last one knew: nobody gains time by a worker's end, and
 * nobody loses any. Counted by the kernels of the simulated device. test_promise plays random mixes
 * with hand-overs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/programs/simulate/device.h"

#define MS  UINT64_C(1000000)
#define ANY UINT64_MAX

enum { OWNER = 7, OTHER_OWNER = 8 };

static struct device device;
static struct device_carried carried;

static void open_mode(enum proto_mode mode)
{
    struct scheduler_schedule settings;
    scheduler_defaults(&settings);
    settings.mode = mode;
    settings.quantum_ns = 100 * MS;
    device_open(&device, &settings);
}

static struct device_client *arrive(uint32_t request, uint32_t limit, uint64_t kernel,
                                    uint32_t owner)
{
    struct error why = {0};
    struct scheduler_limits limits = {.request = request, .limit = limit, .duty = PLAN_WHOLE};
    device.account = device_account(&device, owner);
    struct device_client *client = device_add(&device, &limits, NULL, 0, 1, &why);
    if (!client) {
        print_message("%s\n", why.text);
        abort();
    }
    client->shortest = client->longest = kernel;
    return client;
}

static void hand_over(void)
{
    device_take(&device, &carried);
    device_hand_over(&device, &carried, 0);
}

static double part(const struct device_client *client, uint64_t start)
{
    return 100.0 * (double)device_had(&device, client) / (double)(device.now - start);
}

/* Each kernel is far longer than a lease, and a crash in the midst of it would have cost nothing.
 */
static void a_lease_under_way_is_charged(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    struct device_client *greedy = arrive(1000, PLAN_WHOLE, 1000 * MS, OWNER);
    uint64_t start = device.now;
    while (device.now < start + 100000 * MS) {
        device_work(&device, greedy, ANY);
        device_run(&device, device.now + 300 * MS);
        hand_over();
    }
    print_message("10 %%: %.2f %%\n", part(greedy, start));
    assert_true(part(greedy, start) < 10.6 && part(greedy, start) > 9);
}

static void a_limit_holds_over_hand_overs(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR);
    struct device_client *limited = arrive(0, 2000, 5 * MS, OWNER);
    uint64_t start = device.now;
    while (device.now < start + 100000 * MS) {
        device_work(&device, limited, ANY);
        device_run(&device, device.now + 400 * MS);
        hand_over();
    }
    print_message("20 %% at most: %.2f %%\n", part(limited, start));
    assert_true(part(limited, start) < 20.6 && part(limited, start) > 18);
}

static void a_limit_of_an_account_holds_over_hand_overs(void **state)
{
    struct error why;
    (void)state;
    open_mode(PROTO_MODE_FAIR);
    struct device_client *limited = arrive(0, PLAN_WHOLE, 5 * MS, OWNER);
    uint64_t start = device.now;
    while (device.now < start + 100000 * MS) {
        /* The supervisor tells each worker. */
        struct scheduler_account *account = limited->scheduled.accounts.of[0];
        struct carry_account was = carried.accounts[account - device.accounts];
        assert_int_equal(
            scheduler_account_set(&device.scheduler, account, 0, 2000, device.now, &why), 0);
        if (was.number)
            carry_account_give(&device.scheduler, account, &was, device.now);
        device_work(&device, limited, ANY);
        device_run(&device, device.now + 400 * MS);
        hand_over();
    }
    print_message("20 %% at most: %.2f %%\n", part(limited, start));
    assert_true(part(limited, start) < 20.6 && part(limited, start) > 18);
}

/* The account that had more idle time waits until the other one has had as much. */
static void who_is_ahead_stays_ahead(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR);
    struct device_client *long_one = arrive(0, PLAN_WHOLE, 2000 * MS, OWNER);
    struct device_client *other = arrive(0, PLAN_WHOLE, 10 * MS, OTHER_OWNER);
    device_work(&device, long_one, ANY);
    device_work(&device, other, ANY);
    device_run(&device, device.now + 1900 * MS);
    assert_int_equal(other->kernels, 0);
    hand_over();
    device_work(&device, other, ANY);
    device_work(&device, long_one, ANY);
    device_run(&device, device.now + 1850 * MS);
    assert_int_equal(device_had(&device, long_one), 1900 * MS);
    device_run(&device, device.now + 500 * MS);
    assert_true(device_had(&device, long_one) > 1900 * MS);
}

/* The overrun of a turn is taken off the account's next one. */
static void a_turn_that_ran_over_is_remembered(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_TURNS);
    struct device_client *late = arrive(0, PLAN_WHOLE, 180 * MS, OWNER);
    device_work(&device, late, ANY);
    struct device_client *other = arrive(0, PLAN_WHOLE, MS, OTHER_OWNER);
    device_work(&device, other, ANY);
    device_run(&device, device.now + 170 * MS);
    assert_ptr_equal(device.scheduler.lease_groups[0].holder, &late->scheduled);
    hand_over();
    struct scheduler_account *account = late->scheduled.accounts.of[0];
    assert_true(account->debt_ns >= 69 * MS && account->debt_ns <= 71 * MS);
}

/* The client that had the turn goes behind those that wait. These keep their order, in whatever
 * order they come back. */
static void who_waits_for_a_turn_keeps_the_place(void **state)
{
    (void)state;
    struct device_client *of[4];
    open_mode(PROTO_MODE_TURNS);
    for (uint32_t i = 0; i < 4; i++) {
        of[i] = arrive(0, PLAN_WHOLE, 10 * MS, OWNER + i);
        device_work(&device, of[i], ANY);
    }
    /* The second turn begins. */
    device_run(&device, device.now + 115 * MS);
    assert_ptr_equal(device.scheduler.lease_groups[0].holder, &of[1]->scheduled);
    device_take(&device, &carried);
    device_hand_over(&device, &carried, 0);
    for (uint32_t i = 0; i < 4; i++)
        of[i]->kernels = 0;
    /* The first one to have work gets the device, since nobody else is there. */
    static const uint32_t back[] = {3, 1, 0, 2}, turns[] = {3, 2, 0, 1};
    for (uint32_t i = 0; i < 4; i++)
        device_work(&device, of[back[i]], ANY);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(of[turns[i]]->kernels, 0);
        device_run(&device, device.now + 60 * MS);
        assert_ptr_equal(device.scheduler.lease_groups[0].holder, &of[turns[i]]->scheduled);
        device_run(&device, device.now + 40 * MS);
    }
}

/* One that does not come back with work at once is like any other that has none. */
static void a_place_is_kept_for_a_turn(void **state)
{
    (void)state;
    struct device_client *of[3];
    open_mode(PROTO_MODE_TURNS);
    for (uint32_t i = 0; i < 3; i++) {
        of[i] = arrive(0, PLAN_WHOLE, 10 * MS, OWNER + i);
        device_work(&device, of[i], ANY);
    }
    device_run(&device, device.now + 15 * MS);
    hand_over();
    device_work(&device, of[2], ANY);
    device_run(&device, device.now + 50 * MS);
    device_work(&device, of[0], ANY);
    device_run(&device, device.now + 110 * MS);
    assert_ptr_equal(device.scheduler.lease_groups[0].holder, &of[0]->scheduled);
    device_work(&device, of[1], ANY);
    device_run(&device, device.now + 100 * MS);
    assert_ptr_equal(device.scheduler.lease_groups[0].holder, &of[2]->scheduled);
}

static void counts_go_on(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    struct device_client *one = arrive(5000, PLAN_WHOLE, 10 * MS, OWNER);
    device_work(&device, one, ANY);
    device_run(&device, device.now + 2010 * MS);
    uint64_t leases = one->scheduled.leases;
    uint64_t charged = scheduler_charged(&device.scheduler, &one->scheduled, device.now);
    uint64_t waited =
        scheduler_throttled(&device.scheduler, &one->scheduled, SCHEDULER_HOLD_LEASE, device.now);
    assert_true(leases > 2 && charged > 900 * MS && waited > 900 * MS);
    hand_over();
    assert_int_equal(one->scheduled.leases, leases);
    assert_int_equal(scheduler_charged(&device.scheduler, &one->scheduled, device.now), charged);
    assert_int_equal(
        scheduler_throttled(&device.scheduler, &one->scheduled, SCHEDULER_HOLD_LEASE, device.now),
        waited);
}

/* The user's next client owes what the one owed that ended with its worker. */
static void a_client_that_does_not_come_back_leaves_its_debt(void **state)
{
    struct carry_client client;
    struct carry_account account;
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    struct device_client *greedy = arrive(1000, PLAN_WHOLE, 2000 * MS, OWNER);
    device_work(&device, greedy, ANY);
    device_run(&device, device.now + 1500 * MS);
    device_take(&device, &carried);
    client = carried.clients[greedy->number];
    account = carried.accounts[greedy->scheduled.accounts.of[0] - device.accounts];
    struct scheduler_schedule settings = device.scheduler.schedule;
    scheduler_open(&device.scheduler, &settings, device.now);
    memset(device.accounts, 0, sizeof device.accounts);
    memset(device.clients, 0, sizeof device.clients);
    memset(device.engines, 0, sizeof device.engines);
    memset(device.last, 0, sizeof device.last);
    carry_client_leave(&device.scheduler, OWNER, &client, &account, device.now);
    struct device_client *next = arrive(1000, PLAN_WHOLE, 10 * MS, OWNER);
    struct device_client *stranger = arrive(1000, PLAN_WHOLE, 10 * MS, OTHER_OWNER);
    device_work(&device, next, ANY);
    device_work(&device, stranger, ANY);
    /* 1500 ms are 15 s of a request of 10 %, of which 1.5 s have passed. */
    device_run(&device, device.now + 13000 * MS);
    assert_int_equal(next->kernels, 0);
    assert_true(device_had(&device, stranger) > 1000 * MS);
    device_run(&device, device.now + 2000 * MS);
    assert_true(next->kernels > 0);
}

/* Of a process that crashed nothing is taken at its word. */
static void any_bytes_may_be_given(void **state)
{
    (void)state;
    uint64_t random = 99;
    for (int round = 0; round < 2000; round++) {
        struct carry_client client;
        struct carry_account account;
        open_mode((enum proto_mode)(PROTO_MODE_CONCURRENT + round % 4));
        struct device_client *one = arrive(1000, 5000, 10 * MS, OWNER);
        for (size_t i = 0; i < sizeof client / 8; i++)
            ((uint64_t *)&client)[i] = device_random(&random) >> (round % 64);
        for (size_t i = 0; i < sizeof account / 8; i++)
            ((uint64_t *)&account)[i] = device_random(&random) >> (round % 64);
        carry_account_give(&device.scheduler, one->scheduled.accounts.of[0], &account, device.now);
        carry_client_give(&device.scheduler, &one->scheduled, &client, device.now);
        carry_client_leave(&device.scheduler, OTHER_OWNER, &client, &account, device.now);
        device_work(&device, arrive(1000, 5000, 10 * MS, OTHER_OWNER), 10);
        device_work(&device, one, 10);
        device_run(&device, device.now + 1000 * MS);
        device_remove(&device, one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_under_way_is_charged),
        cmocka_unit_test(a_limit_holds_over_hand_overs),
        cmocka_unit_test(a_limit_of_an_account_holds_over_hand_overs),
        cmocka_unit_test(who_is_ahead_stays_ahead),
        cmocka_unit_test(a_turn_that_ran_over_is_remembered),
        cmocka_unit_test(who_waits_for_a_turn_keeps_the_place),
        cmocka_unit_test(a_place_is_kept_for_a_turn),
        cmocka_unit_test(counts_go_on),
        cmocka_unit_test(a_client_that_does_not_come_back_leaves_its_debt),
        cmocka_unit_test(any_bytes_may_be_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
