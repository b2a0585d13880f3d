/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "server/scheduler/plan.h"
#include "server/scheduler/sm/sm_allocation.h"
#include "tests/programs/simulate/device.h"
#include "tests/support/sm_group_sizes.h"

static struct error why;

static void arrive(struct sm_allocation *allocation, struct sm_allocation_client *client,
                   uint32_t request, uint32_t limit)
{
    memset(client, 0, sizeof *client);
    int result = sm_allocation_add(allocation, client, NULL, request, limit, &why);
    if (result)
        fail_msg("%d: %s", result, why.text);
}

static uint64_t bits(const struct sm_allocation_client *client)
{
    return client->now.bits[0];
}

static void drain_names(struct sm_allocation *allocation)
{
    while (sm_allocation_next_changed(allocation))
        continue;
}

static void percentages_round_down_to_sm_groups(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    bool remainder;
    assert_int_equal(sm_allocation_open(&allocation, 16, 8, 4), 0); /* 132 multiprocessors */
    assert_int_equal(allocation.total, 132);
    assert_int_equal(sm_allocation_sm_groups(&allocation, 5000, &remainder), 8);
    assert_false(remainder); /* 66: 64 and 2 left */
    assert_int_equal(sm_allocation_sm_groups(&allocation, 5200, &remainder), 8);
    assert_true(remainder); /* 68: 64 and the 4 */
    assert_int_equal(sm_allocation_sm_groups(&allocation, 3000, &remainder), 4);
    assert_int_equal(sm_allocation_sm_groups(&allocation, 1, &remainder), 1);
    assert_int_equal(sm_allocation_sm_groups(&allocation, 0, &remainder), 0);
    assert_int_equal(sm_allocation_sm_groups(&allocation, PLAN_WHOLE, &remainder), 16);
    assert_true(remainder);
    struct sm_allocation_client all, half;
    arrive(&allocation, &all, 0, PLAN_WHOLE);
    arrive(&allocation, &half, 0, 5000);
    assert_int_equal(sm_group_sizes_sum(&allocation, &all.now), 132);
    assert_int_equal(sm_group_sizes_sum(&allocation, &half.now), 64);
    assert_int_equal(sm_allocation_open(&allocation, 0, 8, 0), -EINVAL);
    assert_int_equal(sm_allocation_open(&allocation, 256, 8, 4), -EINVAL);
    assert_int_equal(sm_allocation_open(&allocation, 256, 8, 12), -EINVAL);
    assert_int_equal(sm_allocation_open(&allocation, 255, 8, 12), 0);
}

static uint32_t granted(const struct sm_allocation *allocation, uint32_t percentage)
{
    struct sm_allocation_client client;
    struct sm_allocation copy = *allocation;
    arrive(&copy, &client, 0, percentage);
    assert_int_equal(sm_allocation_max(&copy, &client), sm_group_sizes_sum(&copy, &client.now));
    return sm_allocation_max(&copy, &client);
}

static void no_limit_is_exceeded_but_below_one_sm_group(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    assert_int_equal(sm_allocation_open(&allocation, 16, 8, 4), 0);
    assert_int_equal(granted(&allocation, 1), 8);
    assert_int_equal(granted(&allocation, 606), 8);   /* 7.99 */
    assert_int_equal(granted(&allocation, 607), 8);   /* 8.01 */
    assert_int_equal(granted(&allocation, 1000), 12); /* 13: an SM group and the remainder */
    assert_int_equal(granted(&allocation, 2500), 32); /* 33 */
    assert_int_equal(granted(&allocation, 9999), 128);
    for (uint32_t percentage = 607; percentage <= PLAN_WHOLE; percentage++)
        assert_true(granted(&allocation, percentage) <= 132u * percentage / PLAN_WHOLE);
    assert_int_equal(sm_allocation_open(&allocation, 54, 2, 0), 0);
    assert_int_equal(granted(&allocation, PLAN_WHOLE), 108);
    assert_int_equal(granted(&allocation, 9900), 106);
    assert_int_equal(granted(&allocation, 100), 2);
}

static void where_nothing_can_be_divided_requests_mean_nothing(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client clients[4];
    assert_int_equal(sm_allocation_open(&allocation, 1, 132, 0), 0);
    for (int i = 0; i < 4; i++) {
        arrive(&allocation, &clients[i], 5000, 6000);
        sm_allocation_wants(&allocation, &clients[i]);
        assert_int_equal(sm_allocation_max(&allocation, &clients[i]), 132);
    }
    drain_names(&allocation);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(bits(&clients[i]), 1);
        sm_allocation_idle(&allocation, &clients[i]);
    }
    assert_null(sm_allocation_next_changed(&allocation));
}

static void the_remainder_is_for_one_at_a_time(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client a, b, all;
    assert_int_equal(sm_allocation_open(&allocation, 16, 8, 4), 0);
    arrive(&allocation, &a, 0, 3000);
    arrive(&allocation, &b, 0, 7000);
    arrive(&allocation, &all, 0, PLAN_WHOLE);
    assert_int_equal(sm_group_sizes_sum(&allocation, &a.now), 36);
    assert_int_equal(sm_group_sizes_sum(&allocation, &b.now), 88);
    assert_int_equal(sm_group_sizes_sum(&allocation, &all.now), 132);
    assert_int_equal(sm_allocation_max(&allocation, &b), 92);
    assert_false(sm_group_set_overlaps(&a.now, &b.now));
    sm_allocation_remove(&allocation, &a);
    sm_allocation_wants(&allocation, &b);
    assert_int_equal(sm_group_sizes_sum(&allocation, &b.now), 92);
}

static bool has_remainder(const struct sm_allocation *allocation,
                          const struct sm_allocation_client *client)
{
    return sm_group_set_has(&client->now, allocation->count);
}

/* 4 multiprocessors are a ninth of 36, and less than a twentieth of 92. */
static void the_smallest_client_has_the_remainder_whoever_came_first(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client large, small, equal, all;
    assert_int_equal(sm_allocation_open(&allocation, 16, 8, 4), 0);
    arrive(&allocation, &all, 0, PLAN_WHOLE);
    arrive(&allocation, &large, 0, 7000);
    assert_int_equal(sm_group_sizes_sum(&allocation, &large.now), 92);
    sm_allocation_wants(&allocation, &large);
    drain_names(&allocation);
    arrive(&allocation, &small, 0, 3000);
    assert_int_equal(sm_group_sizes_sum(&allocation, &small.now), 36);
    assert_int_equal(sm_group_sizes_sum(&allocation, &large.now), 88);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), &small);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), &large);
    arrive(&allocation, &equal, 0, 3000);
    assert_int_equal(sm_group_sizes_sum(&allocation, &equal.now), 32);
    assert_true(has_remainder(&allocation, &small));
    assert_true(has_remainder(&allocation, &all));
    assert_int_equal(sm_allocation_update(&allocation, &small, 0, 8000, &why), 0);
    assert_false(has_remainder(&allocation, &small));
    sm_allocation_remove(&allocation, &equal);
    sm_allocation_remove(&allocation, &small);
    assert_true(has_remainder(&allocation, &large)); /* small had no work when it left */
}

static void room_is_used_again(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client clients[4], fifth, a;
    assert_int_equal(sm_allocation_open(&allocation, 16, 8, 4), 0);
    struct sm_group_set all = {{0}};
    for (int i = 0; i < 4; i++) {
        arrive(&allocation, &clients[i], 0, 2500);
        assert_false(sm_group_set_overlaps(&all, &clients[i].now));
        sm_group_set_join(&all, &clients[i].now);
    }
    /* A fifth shares with somebody, on the first of the least loaded. */
    arrive(&allocation, &fifth, 0, 2500);
    assert_true(sm_group_set_equals(&fifth.now, &clients[0].now));
    sm_allocation_remove(&allocation, &fifth);
    sm_allocation_remove(&allocation, &clients[2]);
    arrive(&allocation, &a, 0, 2500);
    assert_true(sm_group_set_equals(&a.now, &clients[2].now));
}

static void a_client_that_gets_less_leaves_the_crowded_sm_groups(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client a, b;
    sm_allocation_open(&allocation, 8, 2, 0);
    arrive(&allocation, &a, 0, PLAN_WHOLE);
    arrive(&allocation, &b, 0, 5000);
    assert_int_equal(bits(&b), 0x0f);
    assert_int_equal(sm_allocation_update(&allocation, &a, 0, 5000, &why), 0);
    assert_int_equal(bits(&a), 0xf0);
}

static void limits_overlap_on_the_least_loaded_sm_groups(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client a, b, c;
    sm_allocation_open(&allocation, 8, 2, 0);
    arrive(&allocation, &a, 0, 5000);
    arrive(&allocation, &b, 0, 5000);
    arrive(&allocation, &c, 0, 7500);
    assert_int_equal(bits(&a), 0x0f);
    assert_int_equal(bits(&b), 0xf0);
    assert_int_equal(bits(&c), 0x3f);
}

/* The picture of the contract. */
static void a_request_is_lent_and_taken_back(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client a, b, c;
    sm_allocation_open(&allocation, 8, 2, 0);
    arrive(&allocation, &a, 5000, 5000);
    arrive(&allocation, &b, 2500, PLAN_WHOLE);
    sm_allocation_wants(&allocation, &a);
    sm_allocation_wants(&allocation, &b);
    arrive(&allocation, &c, 0, 5000);
    sm_allocation_wants(&allocation, &c);
    assert_int_equal(bits(&a), 0x0f);
    assert_int_equal(bits(&b), 0xf0);
    assert_int_equal(bits(&c), 0xc0);
    drain_names(&allocation);
    sm_allocation_idle(&allocation, &a);
    assert_int_equal(bits(&b), 0xff);
    assert_int_equal(bits(&c), 0xc3);
    drain_names(&allocation);
    sm_allocation_wants(&allocation, &a);
    assert_int_equal(bits(&a), 0x0f);
    assert_int_equal(bits(&b), 0xf0);
    assert_int_equal(bits(&c), 0xc0);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), &b);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), &c);
    assert_null(sm_allocation_next_changed(&allocation));
    /* Nothing was lent in between: nobody moves. */
    sm_allocation_idle(&allocation, &b);
    drain_names(&allocation);
    sm_allocation_wants(&allocation, &b);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), &c); /* it had taken b's */
    sm_allocation_remove(&allocation, &c);
    sm_allocation_idle(&allocation, &b);
    sm_allocation_wants(&allocation, &b);
    assert_null(sm_allocation_next_changed(&allocation));
}

static void overcommitted_requests_are_refused_with_the_arithmetic(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client a, b, c = {0};
    sm_allocation_open(&allocation, 16, 8, 4);
    arrive(&allocation, &a, 5000, 5000);
    arrive(&allocation, &b, 3000, PLAN_WHOLE);
    assert_int_equal(sm_allocation_add(&allocation, &c, NULL, 4000, 4000, &why),
                     PROTO_ERROR_NO_ROOM);
    assert_string_equal(
        why.text,
        "threads: the requests of others (2) have 12 of the device's 16 SM groups of "
        "8 multiprocessors of their own; with the 6 of this request that makes 18: "
        "ask for 4 at most, which is 30.3 %, or an administrator can lower another request");
    assert_false(c.present);
    assert_int_equal(sm_allocation_add(&allocation, &c, NULL, 5000, 4000, &why),
                     PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(sm_allocation_add(&allocation, &c, NULL, 2500, 4000, &why), 0);
    /* 31 % of 132 are 40.92: 5 SM groups, and 8 + 4 are there. */
    assert_int_equal(sm_allocation_update(&allocation, &b, 3100, PLAN_WHOLE, &why),
                     PROTO_ERROR_NO_ROOM);
    assert_int_equal(b.request, 3000);
    assert_int_equal(sm_allocation_update(&allocation, &c, 2400, 4000, &why), 0);
    assert_int_equal(sm_allocation_update(&allocation, &b, 3100, PLAN_WHOLE, &why), 0);
    assert_int_equal(sm_group_set_count(&b.own), 5);
}

static void without_a_free_sm_group_a_client_is_held(void **state)
{
    (void)state;
    struct sm_allocation allocation;
    struct sm_allocation_client a, b, c;
    sm_allocation_open(&allocation, 4, 8, 0);
    arrive(&allocation, &a, 5000, 5000);
    arrive(&allocation, &b, 5000, 5000);
    arrive(&allocation, &c, 0, 5000);
    sm_allocation_wants(&allocation, &a);
    sm_allocation_wants(&allocation, &b);
    sm_allocation_wants(&allocation, &c);
    assert_true(sm_group_set_is_empty(&c.now));
    sm_allocation_idle(&allocation, &b);
    assert_int_equal(bits(&c), bits(&b));
    sm_allocation_wants(&allocation, &b);
    assert_true(sm_group_set_is_empty(&c.now));
    sm_allocation_remove(&allocation, &a);
    assert_int_equal(bits(&c), 0x3);
}

/* ---- any mix ---- */

enum { CLIENTS = 24 };

/* No two limited clients have the remainder, and a smaller one that may have it comes first. */
static void check_remainder(const struct sm_allocation *allocation,
                            const struct sm_allocation_client *clients, int step)
{
    const struct sm_allocation_client *owner = NULL;
    for (int i = 0; i < CLIENTS && allocation->remainder; i++) {
        const struct sm_allocation_client *client = &clients[i];
        if (!client->present || client->max_sm_groups == allocation->count ||
            !has_remainder(allocation, client))
            continue;
        if (owner)
            fail_msg("step %d: two clients have the remainder", step);
        owner = client;
    }
    for (int i = 0; i < CLIENTS && owner; i++)
        if (clients[i].present && clients[i].max_remainder &&
            clients[i].max_sm_groups < owner->max_sm_groups)
            fail_msg("step %d: the remainder is not client %d's", step, i);
}

static void check_all(const struct sm_allocation *allocation,
                      const struct sm_allocation_client *clients, int step)
{
    uint32_t load[SM_GROUPS_MAX] = {0};
    struct sm_group_set owned = {{0}};
    for (int i = 0; i < CLIENTS; i++) {
        const struct sm_allocation_client *client = &clients[i];
        if (!client->present)
            continue;
        bool whole =
            sm_group_set_count(&client->now) == allocation->count + (allocation->remainder > 0);
        bool all = client->max_sm_groups == allocation->count &&
                   (client->max_remainder || !allocation->remainder);
        for (uint32_t sm_group = 0; sm_group < allocation->count && !all; sm_group++)
            load[sm_group] += sm_group_set_has(&client->now, sm_group);
        if (sm_group_set_overlaps(&owned, &client->own))
            fail_msg("step %d: two clients own an SM group", step);
        sm_group_set_join(&owned, &client->own);
        struct sm_group_set beyond = client->own, taken = {{0}}, rest;
        sm_group_set_cut(&beyond, &client->now);
        if (!sm_group_set_is_empty(&beyond))
            fail_msg("step %d: client %d is not on its own SM groups", step, i);
        uint32_t granted = sm_group_sizes_sum(allocation, &client->now);
        if (sm_group_set_has(&client->now, allocation->count - 1))
            granted -= allocation->last_size - allocation->sm_group_size;
        if (granted > allocation->total * client->limit / PLAN_WHOLE &&
            granted > allocation->sm_group_size)
            fail_msg("step %d: client %d has %u of %u", step, i, granted, client->limit);
        for (int at = 0; at < CLIENTS; at++)
            if (at != i && clients[at].present && clients[at].wants)
                sm_group_set_join(&taken, &clients[at].own);
        if (sm_group_set_overlaps(&taken, &client->now))
            fail_msg("step %d: client %d is on SM groups taken by their owner", step, i);
        if (!client->wants || whole)
            continue;
        /* Nothing lies idle that it could have. */
        rest = taken;
        sm_group_set_join(&rest, &client->now);
        uint32_t sm_groups = 0;
        for (uint32_t sm_group = 0; sm_group < allocation->count; sm_group++)
            sm_groups += sm_group_set_has(&client->now, sm_group);
        for (uint32_t sm_group = 0;
             sm_group < allocation->count && sm_groups < client->max_sm_groups; sm_group++)
            if (!sm_group_set_has(&rest, sm_group))
                fail_msg("step %d: client %d has %u of %u SM groups and SM group %u is free", step,
                         i, sm_groups, client->max_sm_groups, sm_group);
    }
    for (uint32_t sm_group = 0; sm_group < allocation->count; sm_group++)
        assert_int_equal(load[sm_group], allocation->load[sm_group]);
    check_remainder(allocation, clients, step);
}

static void any_mix_keeps_the_promises(void **state)
{
    (void)state;
    static struct sm_allocation_client clients[CLIENTS];
    static struct sm_group_set known[CLIENTS];
    uint64_t random = 9;
    for (int mix = 0; mix < 300; mix++) {
        struct sm_allocation allocation;
        memset(clients, 0, sizeof clients);
        memset(known, 0, sizeof known);
        uint32_t rest = (uint32_t)(device_random(&random) % 24);
        assert_int_equal(
            sm_allocation_open(&allocation, 1 + (uint32_t)(device_random(&random) % 20), 8, rest),
            0);
        for (int step = 0; step < 200; step++) {
            struct sm_allocation_client *client = &clients[device_random(&random) % CLIENTS];
            uint32_t limit = 1 + (uint32_t)(device_random(&random) % PLAN_WHOLE);
            limit = device_random(&random) % 3 ? limit : PLAN_WHOLE;
            uint32_t request = (uint32_t)(device_random(&random) % (limit / 3 + 1));
            request = device_random(&random) % 2 ? request : 0;
            uint64_t what = device_random(&random) % 8;
            if (!client->present)
                sm_allocation_add(&allocation, client, NULL, request, limit, &why);
            else if (what == 0)
                sm_allocation_remove(&allocation, client);
            else if (what == 1)
                sm_allocation_update(&allocation, client, request, limit, &why);
            else if (what < 5)
                sm_allocation_wants(&allocation, client);
            else
                sm_allocation_idle(&allocation, client);
            check_all(&allocation, clients, step);
            struct sm_allocation_client *named;
            while ((named = sm_allocation_next_changed(&allocation)))
                known[named - clients] = named->now;
            for (int i = 0; i < CLIENTS; i++)
                assert_true(!clients[i].present ||
                            sm_group_set_equals(&known[i], &clients[i].now) ||
                            sm_group_set_is_empty(&clients[i].now));
            for (int i = 0; i < CLIENTS; i++)
                if (!clients[i].present)
                    memset(&known[i], 0, sizeof known[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentages_round_down_to_sm_groups),
        cmocka_unit_test(no_limit_is_exceeded_but_below_one_sm_group),
        cmocka_unit_test(where_nothing_can_be_divided_requests_mean_nothing),
        cmocka_unit_test(the_remainder_is_for_one_at_a_time),
        cmocka_unit_test(the_smallest_client_has_the_remainder_whoever_came_first),
        cmocka_unit_test(room_is_used_again),
        cmocka_unit_test(a_client_that_gets_less_leaves_the_crowded_sm_groups),
        cmocka_unit_test(limits_overlap_on_the_least_loaded_sm_groups),
        cmocka_unit_test(a_request_is_lent_and_taken_back),
        cmocka_unit_test(overcommitted_requests_are_refused_with_the_arithmetic),
        cmocka_unit_test(without_a_free_sm_group_a_client_is_held),
        cmocka_unit_test(any_mix_keeps_the_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
