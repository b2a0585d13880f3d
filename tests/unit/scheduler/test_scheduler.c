/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Settings, refusals, lease groups, and changes while work is in flight. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/programs/simulate/device.h"

#define US  UINT64_C(1000)
#define MS  UINT64_C(1000000)
#define ANY UINT64_MAX

static struct device device;
static struct scheduler_schedule settings;
static struct error why;

static void open_mode(enum proto_mode mode)
{
    scheduler_defaults(&settings);
    settings.mode = mode;
    device_open(&device, &settings);
}

static struct sm_group_set sm_groups(uint32_t first, uint32_t last)
{
    struct sm_group_set set = {{0}};
    for (uint32_t sm_group = first; sm_group <= last; sm_group++)
        sm_group_set_add(&set, sm_group);
    return set;
}

static struct device_client *arrive_on(uint32_t request, const struct sm_group_set *set,
                                       uint32_t engine)
{
    struct scheduler_limits limits = {.request = request, .limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    struct device_client *client = device_add(&device, &limits, set, engine, 1, &why);
    if (!client) {
        fail_msg("%s", why.text);
        abort();
    }
    return client;
}

static int try_request(uint32_t request, uint32_t limit, const struct sm_group_set *set)
{
    struct scheduler_client client = {0};
    struct scheduler_limits limits = {.request = request, .limit = limit, .duty = PLAN_WHOLE};
    int result = scheduler_add(&device.scheduler, &client, &limits, NULL, set, device.now, &why);
    if (result == 0)
        scheduler_remove(&device.scheduler, &client, device.now);
    return result;
}

static double share_of(const struct device_client *client, uint64_t before, uint64_t span)
{
    return 100.0 * (double)(device_had(&device, client) - before) / (double)span;
}

static void the_remedy_asks_for_less_only_where_something_is_left(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    arrive_on(5000, NULL, 0);
    arrive_on(5000, NULL, 0);
    assert_int_equal(try_request(1, PLAN_WHOLE, NULL), PROTO_ERROR_NO_ROOM);
    assert_string_equal(
        why.text,
        "time: the requests of other clients on these multiprocessors (2) are 50 % + 50 % = 100 %; "
        "with the 0.01 % of this request that makes 100.01 %, more than 100 %: "
        "nothing is left to ask for until one of them has left, or an administrator lowers its "
        "request");
}

static void sums_above_one_are_refused_with_the_arithmetic(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    arrive_on(2000, NULL, 0);
    arrive_on(3300, NULL, 0);
    struct device_client *third = arrive_on(3705, NULL, 0);
    assert_int_equal(try_request(995, PLAN_WHOLE, NULL), 0);
    assert_int_equal(try_request(996, PLAN_WHOLE, NULL), PROTO_ERROR_NO_ROOM);
    assert_string_equal(
        why.text,
        "time: the requests of other clients on these multiprocessors (3) are 37.05 % + 33 % + "
        "20 % = 90.05 %; with the 9.96 % of this request that makes 100.01 %, more "
        "than 100 %: ask for 9.95 % at most, or an administrator can lower another request");
    /* Nothing changed by the refusal; a client's own request does not count against it. */
    struct scheduler_limits limits = {.request = 4700, .limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    assert_int_equal(
        scheduler_update(&device.scheduler, &third->scheduled, &limits, NULL, device.now, &why), 0);
    limits.request++;
    assert_int_equal(
        scheduler_update(&device.scheduler, &third->scheduled, &limits, NULL, device.now, &why),
        PROTO_ERROR_NO_ROOM);
    assert_non_null(strstr(why.text, "multiprocessors (2) are 33 % + 20 % = 53 %"));
    assert_int_equal(third->scheduled.limits.request, 4700);
    assert_int_equal(try_request(1, PLAN_WHOLE, NULL), PROTO_ERROR_NO_ROOM);
    assert_int_equal(try_request(0, PLAN_WHOLE, NULL), 0);
}

static void limits_out_of_range_are_refused(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR);
    assert_int_equal(try_request(0, 0, NULL), PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(try_request(0, PLAN_WHOLE + 1, NULL), PROTO_ERROR_INVALID_VALUE);
    assert_string_equal(why.text, "time limit (hundredths of a per cent) is 10001; it must be 1 to "
                                  "10000");
    assert_int_equal(try_request(5001, 5000, NULL), PROTO_ERROR_INVALID_VALUE);
    assert_string_equal(why.text, "time request 50.01 % is more than the time limit 50.00 %");
    assert_int_equal(try_request(5000, 5000, NULL), 0);
}

static void settings_out_of_range_are_refused(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR);
    const struct scheduler_schedule good = settings;
    assert_int_equal(scheduler_check(&good, &why), 0);
    struct scheduler_schedule bad = good;
    bad.lease_ns = 5 * MS - 1;
    assert_int_equal(scheduler_set(&device.scheduler, &bad, device.now, &why),
                     PROTO_ERROR_INVALID_VALUE);
    assert_non_null(strstr(why.text, "lease (ns) is 4999999; it must be 5000000 to 10000000000"));
    assert_int_equal(device.scheduler.schedule.lease_ns, 250 * MS);
    bad.lease_ns = 10000 * MS + 1;
    assert_int_equal(scheduler_check(&bad, &why), PROTO_ERROR_INVALID_VALUE);
    bad = good;
    bad.precision = 99;
    assert_int_equal(scheduler_check(&bad, &why), PROTO_ERROR_INVALID_VALUE);
    bad.precision = 5001;
    assert_int_equal(scheduler_check(&bad, &why), PROTO_ERROR_INVALID_VALUE);
    bad = good;
    bad.in_flight_limit = 0;
    assert_int_equal(scheduler_check(&bad, &why), PROTO_ERROR_INVALID_VALUE);
    bad = good;
    bad.low_in_flight_limit = good.quiet_in_flight_limit + 1;
    assert_int_equal(scheduler_check(&bad, &why), PROTO_ERROR_INVALID_VALUE);
    bad = good;
    bad.quantum_ns = 1;
    assert_int_equal(scheduler_check(&bad, &why), PROTO_ERROR_INVALID_VALUE);
    bad = good;
    bad.mode = (enum proto_mode)(PROTO_MODE_TURNS + 1);
    assert_int_equal(scheduler_check(&bad, &why), PROTO_ERROR_INVALID_VALUE);
}

/* The picture of a plan in the contract: who is named when, and until when. */
static void a_plan_is_as_its_picture_shows(void **state)
{
    (void)state;
    static const struct {
        int client;
        uint64_t at_us, length_us;
    } expected[] = {
        {0, 0, 250000},       {1, 250000, 250000},  {0, 500000, 250000},  {2, 750000, 250000},
        {0, 1000000, 250000}, {1, 1250000, 250000}, {0, 1500000, 250000}, {1, 1750000, 250000},
        {0, 2000000, 250000}, {1, 2272727, 250000}, {0, 2522727, 250000}, {2, 2772727, 250000},
        {0, 3022727, 250000}, {1, 3272727, 250000}, {0, 3522727, 250000}, {1, 3787878, 250000},
        {0, 4037878, 250000}, {0, 4500000, 250000}, {1, 4750000, 250000}, {0, 5000000, 250000}};
    static const uint32_t fractions[3] = {5000, 3300, 1000};
    open_mode(PROTO_MODE_STRICT);
    struct device_client *clients[3];
    struct scheduler *scheduler = &device.scheduler;
    uint64_t start = device.now, now = start;
    for (int i = 0; i < 3; i++)
        clients[i] = arrive_on(fractions[i], NULL, 0);
    for (int i = 0; i < 3; i++)
        scheduler_wants(scheduler, &clients[i]->scheduled, now);
    for (size_t i = 0; i < sizeof expected / sizeof *expected;) {
        struct scheduler_client *named = scheduler_decide(scheduler, now);
        if (!named) {
            now = scheduler_next_event(scheduler, now);
            continue;
        }
        assert_ptr_equal(named, &clients[expected[i].client]->scheduled);
        assert_int_equal((now - start) / US, expected[i].at_us);
        assert_int_equal((scheduler->lease_groups[0].lease_ends - now) / US, expected[i].length_us);
        i++;
    }
    assert_int_equal(now, start + 5000 * MS);
    assert_int_equal(clients[0]->scheduled.charged_ns, 2500 * MS);
    assert_int_equal(clients[1]->scheduled.charged_ns, 1750 * MS);
    assert_int_equal(clients[2]->scheduled.charged_ns, 500 * MS);
}

/* ---- lease groups ---- */

static void partitions_apart_have_a_lease_each(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    struct sm_group_set left = sm_groups(0, 7), right = sm_groups(8, 15);
    struct device_client *a = arrive_on(6000, &left, 0), *b = arrive_on(4000, &left, 0);
    struct device_client *c = arrive_on(9000, &right, 1);
    struct device_client *all[3] = {a, b, c};
    for (int i = 0; i < 3; i++)
        device_work(&device, all[i], ANY);
    device_run(&device, device.now + 50000 * MS);
    assert_in_range(device_had(&device, a), 29500 * MS, 30500 * MS);
    assert_in_range(device_had(&device, b), 19500 * MS, 20500 * MS);
    assert_in_range(device_had(&device, c), 44500 * MS, 45500 * MS);
    assert_int_equal(device.overlapped, 0);
    /* Sums count within a lease group; one that joins the two would have to fit both. */
    struct sm_group_set bridge = sm_groups(7, 8), middle = sm_groups(8, 8);
    assert_int_equal(try_request(1000, PLAN_WHOLE, &right), 0);
    assert_int_equal(try_request(1001, PLAN_WHOLE, &right), PROTO_ERROR_NO_ROOM);
    assert_int_equal(try_request(1000, PLAN_WHOLE, &middle), 0);
    assert_int_equal(try_request(1, PLAN_WHOLE, &bridge), PROTO_ERROR_NO_ROOM);
    assert_non_null(strstr(why.text, "multiprocessors (3) are 90 % + 40 % + 60 % = 190 %"));
}

static void partitions_that_overlap_share_a_lease(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR);
    struct sm_group_set x = sm_groups(0, 3), y = sm_groups(2, 5), z = sm_groups(4, 7);
    struct device_client *clients[3] = {arrive_on(2000, &x, 0), arrive_on(2000, &z, 0), NULL};
    assert_ptr_not_equal(clients[0]->scheduled.lease_group, clients[1]->scheduled.lease_group);
    clients[2] = arrive_on(2000, &y, 0);
    for (int i = 0; i < 3; i++)
        device_work(&device, clients[i], ANY);
    assert_ptr_equal(clients[0]->scheduled.lease_group, clients[1]->scheduled.lease_group);
    /* So do their requests: x's count for z, though these two don't meet. */
    assert_int_equal(try_request(4000, PLAN_WHOLE, &z), 0);
    assert_int_equal(try_request(4001, PLAN_WHOLE, &z), PROTO_ERROR_NO_ROOM);
    device_run(&device, device.now + 30000 * MS);
    for (int i = 0; i < 3; i++)
        assert_in_range(device_had(&device, clients[i]), 9700 * MS, 10300 * MS);
    assert_int_equal(device.overlapped, 0);
    /* Without the one between them the others run side by side. */
    device_remove(&device, clients[2]);
    assert_ptr_not_equal(clients[0]->scheduled.lease_group, clients[1]->scheduled.lease_group);
}

/* Whatever order they come in. */
static void a_client_that_overlaps_two_lease_groups_joins_them(void **state)
{
    (void)state;
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const struct sm_group_set sets[3] = {sm_groups(0, 3), sm_groups(2, 5), sm_groups(4, 7)};
    for (int order = 0; order < 6; order++) {
        struct device_client *clients[3];
        open_mode(PROTO_MODE_FAIR);
        for (int i = 0; i < 3; i++)
            clients[i] = arrive_on(1000, &sets[orders[order][i]], 0);
        assert_int_equal(device.scheduler.lease_group_count, 1);
        for (int i = 0; i < 3; i++)
            assert_ptr_equal(clients[i]->scheduled.lease_group, &device.scheduler.lease_groups[0]);
    }
}

static void a_lease_ends_with_its_client(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR);
    settings.lease_ns = 10000 * MS;
    assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
    struct device_client *a = arrive_on(2000, NULL, 0), *b = arrive_on(2000, NULL, 0);
    device_work(&device, a, ANY);
    device_work(&device, b, ANY);
    assert_ptr_equal(b->scheduled.lease_group->holder, &a->scheduled);
    device_run(&device, device.now + 100 * MS);
    device_remove(&device, a);
    assert_ptr_equal(b->scheduled.lease_group->holder, &b->scheduled);
    assert_int_equal(scheduler_may_submit(&device.scheduler, &b->scheduled, device.now).until,
                     device.now + 10000 * MS);
}

/* Clients move between partitions at random, with work in flight: no lease is shared, no one is
 * forgotten, nothing is charged twice or to nobody. */
static void clients_may_move_at_any_moment(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int mix = 0; mix < 200; mix++) {
        struct device_client *clients[8];
        scheduler_defaults(&settings);
        settings.mode = PROTO_MODE_STRICT + mix % 3;
        settings.quantum_ns = 1000 * MS;
        device_open(&device, &settings);
        for (int i = 0; i < 8; i++) {
            clients[i] = arrive_on(1000, NULL, 0);
            clients[i]->longest = 20 * MS;
            device_work(&device, clients[i], ANY);
        }
        uint64_t start = device.now;
        for (int i = 0; i < 60; i++) {
            struct sm_group_set set = sm_groups(0, 4 + (uint32_t)(device_random(&random) % 4));
            struct device_client *moved = clients[device_random(&random) % 8];
            scheduler_place(&device.scheduler, &moved->scheduled, &set, device.now);
            device_run(&device, device.now + device_random(&random) % (100 * MS));
        }
        device_run(&device, device.now + 60000 * MS);
        assert_int_equal(device.overlapped, 0);
        uint64_t charged = 0, had = 0, span = device.now - start;
        for (int i = 0; i < 8; i++) {
            charged += clients[i]->scheduled.charged_ns;
            had += device_had(&device, clients[i]);
            assert_true(clients[i]->kernels > 100);
        }
        /* All but the lease that runs. */
        assert_true(charged <= span);
        assert_true(charged + 1100 * MS > had);
    }
}

/* ---- live changes ---- */

static void modes_switch_with_work_in_flight(void **state)
{
    (void)state;
    static const enum proto_mode modes[] = {PROTO_MODE_CONCURRENT, PROTO_MODE_STRICT,
                                            PROTO_MODE_CONCURRENT, PROTO_MODE_FAIR,
                                            PROTO_MODE_TURNS,      PROTO_MODE_STRICT};
    open_mode(PROTO_MODE_FAIR);
    struct device_client *a = arrive_on(7000, NULL, 0), *b = arrive_on(2000, NULL, 0);
    device_work(&device, a, ANY);
    device_work(&device, b, ANY);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        device_run(&device, device.now + 333 * MS);
        settings.mode = modes[i];
        assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
        /* Work in flight from concurrent mode is done first. */
        device_run(&device, device.now + 1000 * MS);
        uint64_t before_a = device_had(&device, a), before_b = device_had(&device, b);
        device_run(&device, device.now + 60000 * MS);
        double had_a = share_of(a, before_a, 60000 * MS);
        double had_b = share_of(b, before_b, 60000 * MS);
        double due_a = 50, due_b = 50;
        if (modes[i] == PROTO_MODE_STRICT)
            due_a = 70, due_b = 20;
        if (modes[i] == PROTO_MODE_FAIR)
            due_a = 75, due_b = 25;
        if (had_a < due_a - 2 || had_a > due_a + 2 || had_b < due_b - 2 || had_b > due_b + 2)
            fail_msg("switch %zu: %.2f %% and %.2f %%", i, had_a, had_b);
    }
}

/* Where time is not enforced any requests may meet; it can't be enforced while they do not fit. */
static void modes_that_enforce_time_need_requests_that_fit(void **state)
{
    (void)state;
    static const enum proto_mode lenient[] = {PROTO_MODE_CONCURRENT, PROTO_MODE_TURNS};
    for (int i = 0; i < 2; i++) {
        open_mode(lenient[i]);
        struct device_client *a = arrive_on(6000, NULL, 0), *b = arrive_on(4001, NULL, 0);
        const struct scheduler_schedule before = device.scheduler.schedule;
        settings.lease_ns = 10 * MS;
        for (int mode = PROTO_MODE_STRICT; mode <= PROTO_MODE_FAIR; mode++) {
            settings.mode = (enum proto_mode)mode;
            assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why),
                             PROTO_ERROR_NO_ROOM);
            assert_non_null(strstr(why.text, "100.01 %"));
            assert_memory_equal(&device.scheduler.schedule, &before, sizeof before);
        }
        settings.mode = lenient[1 - i];
        assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
        device_remove(&device, b);
        b = arrive_on(4000, NULL, 0);
        settings.mode = PROTO_MODE_FAIR;
        assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
        device_remove(&device, a);
        device_remove(&device, b);
    }
}

/* Work in flight is bounded in number, in time, and by two for each ring with work, or one
 * of a borrower. */
static void in_flight_limits_are_bounded_in_time(void **state)
{
    (void)state;
    struct scheduler_client client = {0};
    scheduler_defaults(&settings);
    assert_int_equal(settings.in_flight_limit_ns, 8 * MS);
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), SCHEDULER_IN_FLIGHT_MIN);
    static const struct {
        uint64_t mean;
        uint32_t rings, in_flight_limit;
    } cases[] = {{1, 0, 128},       {50 * US, 0, 128}, {100 * US, 0, 80},   {MS, 0, 8},
                 {3 * MS, 0, 2},    {8 * MS, 0, 2},    {1000 * MS, 0, 2},   {1000 * MS, 1, 2},
                 {1000 * MS, 3, 6}, {MS, 3, 8},        {1000 * MS, 99, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        client = (struct scheduler_client){.mean_ns = cases[i].mean, .rings = cases[i].rings};
        assert_int_equal(policy_in_flight_limit(&settings, &client, false),
                         cases[i].in_flight_limit);
    }
    client = (struct scheduler_client){.mean_ns = MS, .borrows = true};
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), 4);
    client.mean_ns = 4 * MS;
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), 1);
    client.mean_ns = 0;
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), 1);
    /* A guest, 1 ms of work (docs/sharing.md). */
    client = (struct scheduler_client){.mean_ns = MS / 4, .guest = true};
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), 4);
    client = (struct scheduler_client){.borrows = true};
    /* An owner that comes back waits for one long command of a borrower, not for one of each queue.
     */
    client.rings = 32;
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), 1);
    client.mean_ns = 10 * MS;
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), 1);
    /* Nobody else waits for the lease: four times as long. */
    client = (struct scheduler_client){.mean_ns = MS};
    assert_int_equal(policy_in_flight_limit(&settings, &client, true), 32);
    client.borrows = true;
    assert_int_equal(policy_in_flight_limit(&settings, &client, true), 4);
    /* Nothing known: two for each queue, and no guess at more. */
    client = (struct scheduler_client){.rings = 5};
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), 10);
    settings.in_flight_limit_ns = 0;
    assert_int_equal(policy_in_flight_limit(&settings, &client, false), 128);
}

/* Queues get beyond the limit what they lack for two each, as long as these two of all queues stay
 * within it. */
static void each_queue_has_room_for_two_beyond_the_limit(void **state)
{
    (void)state;
    const struct scheduler *scheduler = &device.scheduler;
    struct scheduler_client client = {0};
    open_mode(PROTO_MODE_CONCURRENT);
    static const struct {
        uint32_t rings, lacking, room;
    } cases[] = {{0, 0, 0}, {0, 2, 2}, {2, 1, 1}, {2, 2, 2}, {64, 2, 2}, {65, 2, 0}, {65, 3, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        client = (struct scheduler_client){.rings = cases[i].rings};
        assert_int_equal(scheduler_least_room(scheduler, &client, cases[i].lacking), cases[i].room);
    }
    client = (struct scheduler_client){.rings = 2, .borrows = true};
    assert_int_equal(scheduler_least_room(scheduler, &client, 2), 0);
    /* Less urgent than another client: 32 and no more. */
    arrive_on(0, NULL, 0);
    client = (struct scheduler_client){.rings = 16, .limits.level = 1};
    assert_int_equal(scheduler_least_room(scheduler, &client, 2), 2);
    client.rings = 17;
    assert_int_equal(scheduler_least_room(scheduler, &client, 2), 0);
    /* A lease bounds all queues together. */
    open_mode(PROTO_MODE_TURNS);
    client = (struct scheduler_client){.rings = 2};
    assert_int_equal(scheduler_least_room(scheduler, &client, 2), 0);
}

/* A client with SM groups that change while it runs meets others there, or parts from them, at
 * once. */
static void a_client_that_moves_joins_and_leaves_lease_groups(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    const struct sm_group_set left = sm_groups(0, 3), right = sm_groups(4, 7),
                              middle = sm_groups(3, 4);
    struct device_client *a = arrive_on(5000, &left, 0), *b = arrive_on(5000, &right, 1);
    device_work(&device, a, ANY);
    device_work(&device, b, ANY);
    device_run(&device, device.now + 10 * MS);
    assert_true(a->scheduled.leased && b->scheduled.leased);
    scheduler_place(&device.scheduler, &b->scheduled, &middle, device.now);
    assert_ptr_equal(a->scheduled.lease_group, b->scheduled.lease_group);
    device_run(&device, device.now + 1000 * MS); /* leases that ran side by side have ended */
    for (int i = 0; i < 1000; i++) {
        device_run(&device, device.now + 7 * MS);
        assert_false(device.engines[0].runs && device.engines[1].runs);
    }
    scheduler_place(&device.scheduler, &b->scheduled, &right, device.now);
    assert_ptr_not_equal(a->scheduled.lease_group, b->scheduled.lease_group);
    assert_int_equal(device.overlapped, 0);
}

/* The moment as documented: a 50th of a lease, 1 ms at most. */
static void a_lease_without_work_is_given_back_after_a_moment(void **state)
{
    (void)state;
    static const struct {
        uint64_t lease, moment;
    } cases[] = {
        {5 * MS, 100 * US}, {20 * MS, 400 * US}, {50 * MS, MS}, {250 * MS, MS}, {10000 * MS, MS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_mode(PROTO_MODE_FAIR);
        settings.lease_ns = cases[i].lease;
        assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
        struct device_client *a = arrive_on(0, NULL, 0), *b = arrive_on(0, NULL, 0);
        uint64_t start = device.now;
        device_work(&device, a, 1); /* of 1 ms */
        device_work(&device, b, ANY);
        device_run(&device, start + MS + cases[i].moment - 1);
        assert_true(a->scheduled.leased);
        device_run(&device, start + MS + cases[i].moment);
        assert_true(b->scheduled.leased && !a->scheduled.leased);
    }
}

static uint32_t room_before_the_end(enum proto_mode mode, bool alone)
{
    open_mode(mode);
    settings.in_flight_limit_ns = 0;
    assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
    struct scheduler *scheduler = &device.scheduler;
    struct scheduler_client *a = &arrive_on(0, NULL, 0)->scheduled;
    struct scheduler_client *b = &arrive_on(0, NULL, 0)->scheduled;
    scheduler_pace(a, 8, 8 * MS);
    scheduler_wants(scheduler, a, device.now);
    if (!alone)
        scheduler_wants(scheduler, b, device.now);
    uint64_t end = scheduler_may_submit(scheduler, a, device.now).until;
    scheduler_submitted(scheduler, a, 100, device.now);
    scheduler_done(scheduler, a, 100, device.now);
    return scheduler_may_submit(scheduler, a, end - MS).room;
}

/* The commands before were of 1 us, and nobody knows how long those of this lease are. Each that is
 * done makes room for one more. */
static void a_lease_begins_with_two_commands(void **state)
{
    (void)state;
    static const enum proto_mode modes[] = {PROTO_MODE_FAIR, PROTO_MODE_TURNS};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        open_mode(modes[i]);
        struct scheduler *scheduler = &device.scheduler;
        struct scheduler_client *a = &arrive_on(5000, NULL, 0)->scheduled;
        for (int lease = 0; lease < 3; lease++) {
            scheduler_pace(a, 8, 8 * US);
            scheduler_wants(scheduler, a, device.now);
            while (scheduler_decide(scheduler, device.now))
                continue;
            assert_true(a->leased);
            assert_int_equal(scheduler_may_submit(scheduler, a, device.now).room, 2);
            scheduler_submitted(scheduler, a, 2, device.now);
            assert_int_equal(scheduler_may_submit(scheduler, a, device.now).room, 0);
            /* It had one command only. */
            scheduler_give_back(scheduler, a, 1, device.now);
            assert_int_equal(scheduler_may_submit(scheduler, a, device.now).room, 1);
            scheduler_submitted(scheduler, a, 1, device.now);
            scheduler_done(scheduler, a, 1, device.now);
            assert_int_equal(scheduler_may_submit(scheduler, a, device.now).room, 2);
            scheduler_submitted(scheduler, a, 2, device.now);
            for (uint32_t n = 3; n <= 6; n *= 2) {
                assert_int_equal(scheduler_may_submit(scheduler, a, device.now).room, 0);
                scheduler_done(scheduler, a, n, device.now);
                assert_int_equal(scheduler_may_submit(scheduler, a, device.now).room,
                                 n == 3 ? 6 : 128);
                scheduler_submitted(scheduler, a, 2 * n, device.now);
            }
            scheduler_done(scheduler, a, a->in_flight, device.now);
            scheduler_idle(scheduler, a, device.now);
            while (a->leased) { /* until it is given back */
                device.now = scheduler_next_event(scheduler, device.now);
                assert_int_not_equal(device.now, SCHEDULER_NEVER);
                assert_null(scheduler_decide(scheduler, device.now));
            }
        }
    }
}

/* By a tenth of a lease (25 ms, kernels of 1 ms); not in strict mode, where its share ends there.
 */
static void a_client_alone_may_queue_a_little_beyond_its_lease(void **state)
{
    (void)state;
    assert_int_equal(room_before_the_end(PROTO_MODE_FAIR, true), 26);
    assert_int_equal(room_before_the_end(PROTO_MODE_TURNS, true), 26);
    assert_int_equal(room_before_the_end(PROTO_MODE_STRICT, true), 1);
    assert_int_equal(room_before_the_end(PROTO_MODE_FAIR, false), 1);
    assert_int_equal(room_before_the_end(PROTO_MODE_TURNS, false), 1);
}

/* Ten minutes of another's overrun withhold 180 s of a request of 30 %: 16 plans of it, 24 s, are
 * made good, and no more. */
static void sixteen_plans_of_a_request_are_made_good(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    struct device_client *long_one = arrive_on(5000, NULL, 0), *other = arrive_on(3000, NULL, 0);
    long_one->shortest = long_one->longest = 600000 * MS;
    device_work(&device, long_one, 1);
    device_run(&device, device.now + MS);
    device_work(&device, other, ANY);
    while (long_one->kernels < 1)
        device_step(&device, UINT64_MAX);
    uint64_t before = device_had(&device, other);
    device_run(&device, device.now + 100000 * MS);
    double beyond = (double)(device_had(&device, other) - before) / 1e9 - 30;
    assert_true(beyond > 24 - 1.5 && beyond < 24 + 1.5);
}

/* A client that always has work has the lease or waits for it: each nanosecond is counted once,
 * through changes of mode, limits and place. */
static void every_moment_is_charged_or_waited(void **state)
{
    (void)state;
    uint64_t random = 77;
    struct device_client *clients[4];
    open_mode(PROTO_MODE_STRICT);
    for (int i = 0; i < 4; i++) {
        clients[i] = arrive_on(2000, NULL, 0);
        clients[i]->shortest = 100 * US;
        clients[i]->longest = 100 * MS;
        device_work(&device, clients[i], ANY);
    }
    uint64_t start = device.now;
    for (int step = 0; step < 300; step++) {
        struct scheduler_client *client = &clients[device_random(&random) % 4]->scheduled;
        struct sm_group_set set = sm_groups(0, 4 + (uint32_t)(device_random(&random) % 4));
        struct scheduler_limits limits = {.request = (uint32_t)(device_random(&random) % 2500),
                                          .limit = PLAN_WHOLE,
                                          .duty = PLAN_WHOLE,
                                          .level = (uint32_t)(device_random(&random) % 3)};
        switch (device_random(&random) % 3) {
        case 0:
            settings.mode = PROTO_MODE_STRICT + (enum proto_mode)(device_random(&random) % 3);
            settings.quantum_ns = 500 * MS;
            assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
            break;
        case 1:
            scheduler_place(&device.scheduler, client, &set, device.now);
            break;
        default:
            assert_int_equal(
                scheduler_update(&device.scheduler, client, &limits, NULL, device.now, &why), 0);
        }
        device_run(&device, device.now + device_random(&random) % (300 * MS));
        for (int i = 0; i < 4; i++) {
            const struct scheduler_client *one = &clients[i]->scheduled;
            uint64_t charged = scheduler_charged(&device.scheduler, one, device.now);
            uint64_t waited =
                scheduler_throttled(&device.scheduler, one, SCHEDULER_HOLD_LEASE, device.now);
            if (charged + waited != device.now - start)
                fail_msg("step %d: %lu ns charged, %lu ns waited of %lu ns", step, charged, waited,
                         device.now - start);
            assert_true(charged >= device_had(&device, clients[i]));
        }
    }
}

static void a_running_clients_share_changes_live(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    struct device_client *a = arrive_on(2000, NULL, 0);
    device_work(&device, a, ANY);
    static const uint32_t fractions[] = {3000, 9000, 100, 5000};
    for (int i = 0; i < 4; i++) {
        device_run(&device, device.now + 777 * MS);
        struct scheduler_limits limits = {
            .request = fractions[i], .limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
        assert_int_equal(
            scheduler_update(&device.scheduler, &a->scheduled, &limits, NULL, device.now, &why), 0);
        uint64_t before = device_had(&device, a);
        device_run(&device, device.now + 50000 * MS);
        double had = share_of(a, before, 50000 * MS);
        if (had < fractions[i] / 100.0 - 1 || had > fractions[i] / 100.0 + 1)
            fail_msg("%.2f %% after a change to %u", had, fractions[i]);
    }
}

static void leases_as_short_as_5_ms_work(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_FAIR);
    settings.lease_ns = 5 * MS;
    assert_int_equal(scheduler_set(&device.scheduler, &settings, device.now, &why), 0);
    device.switch_ns = 50 * US; /* to drain, and for the next one's first kernel to begin */
    for (int i = 0; i < 4; i++) {
        struct device_client *client = arrive_on(2500, NULL, 0);
        client->shortest = client->longest = 100 * US;
        device_work(&device, client, ANY);
    }
    uint64_t start = device.now;
    device_run(&device, start + 10000 * MS);
    double busy = (double)device_busy(&device, 0) / (double)(device.now - start);
    assert_true(busy > 0.97);
    for (int i = 0; i < 4; i++)
        assert_true(share_of(&device.clients[i], 0, 10000 * MS) > 25.0 * busy - 0.1);
}

/* The scheduler's own time says when it has to be asked again: nothing else wakes it. */
static void the_next_event_is_never_missed(void **state)
{
    (void)state;
    open_mode(PROTO_MODE_STRICT);
    struct device_client *a = arrive_on(100, NULL, 0);
    a->shortest = a->longest = 10 * MS;
    assert_int_equal(scheduler_next_event(&device.scheduler, device.now), SCHEDULER_NEVER);
    device_work(&device, a, ANY);
    device_run(&device, device.now + 60000 * MS);
    assert_in_range(device_had(&device, a), 590 * MS, 660 * MS);
    device_work(&device, a, 0);
    device_run(&device, device.now + 60000 * MS);
    assert_int_equal(scheduler_next_event(&device.scheduler, device.now), SCHEDULER_NEVER);
    device_remove(&device, a);
    device_remove(&device, a); /* idempotent */
    assert_int_equal(device.scheduler.client_count, 0);
    assert_int_equal(device.scheduler.total_in_flight, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_remedy_asks_for_less_only_where_something_is_left),
        cmocka_unit_test(sums_above_one_are_refused_with_the_arithmetic),
        cmocka_unit_test(limits_out_of_range_are_refused),
        cmocka_unit_test(settings_out_of_range_are_refused),
        cmocka_unit_test(a_plan_is_as_its_picture_shows),
        cmocka_unit_test(partitions_apart_have_a_lease_each),
        cmocka_unit_test(partitions_that_overlap_share_a_lease),
        cmocka_unit_test(a_client_that_overlaps_two_lease_groups_joins_them),
        cmocka_unit_test(a_client_that_moves_joins_and_leaves_lease_groups),
        cmocka_unit_test(a_lease_without_work_is_given_back_after_a_moment),
        cmocka_unit_test(a_lease_begins_with_two_commands),
        cmocka_unit_test(a_client_alone_may_queue_a_little_beyond_its_lease),
        cmocka_unit_test(sixteen_plans_of_a_request_are_made_good),
        cmocka_unit_test(a_lease_ends_with_its_client),
        cmocka_unit_test(clients_may_move_at_any_moment),
        cmocka_unit_test(modes_switch_with_work_in_flight),
        cmocka_unit_test(modes_that_enforce_time_need_requests_that_fit),
        cmocka_unit_test(in_flight_limits_are_bounded_in_time),
        cmocka_unit_test(each_queue_has_room_for_two_beyond_the_limit),
        cmocka_unit_test(every_moment_is_charged_or_waited),
        cmocka_unit_test(a_running_clients_share_changes_live),
        cmocka_unit_test(leases_as_short_as_5_ms_work),
        cmocka_unit_test(the_next_event_is_never_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
