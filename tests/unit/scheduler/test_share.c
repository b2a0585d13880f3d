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
#include "server/scheduler/share.h"
#include "tests/programs/simulate/device.h"

static struct error why;

static void arrive(struct share *share, struct share_client *client, uint32_t request,
                   uint32_t limit)
{
    memset(client, 0, sizeof *client);
    int result = share_add(share, client, request, limit, &why);
    if (result)
        fail_msg("%d: %s", result, why.text);
}

static uint64_t bits(const struct share_client *client)
{
    return client->now.bits[0];
}

static void drain_names(struct share *share)
{
    while (share_named(share))
        continue;
}

static void percentages_round_down_to_sm_groups(void **state)
{
    (void)state;
    struct share share;
    bool remainder;
    assert_int_equal(share_open(&share, 16, 8, 4), 0); /* 132 multiprocessors */
    assert_int_equal(share.total, 132);
    assert_int_equal(share_sm_groups(&share, 5000, &remainder), 8);
    assert_false(remainder); /* 66: 64 and 2 left */
    assert_int_equal(share_sm_groups(&share, 5200, &remainder), 8);
    assert_true(remainder); /* 68: 64 and the 4 */
    assert_int_equal(share_sm_groups(&share, 3000, &remainder), 4);
    assert_int_equal(share_sm_groups(&share, 1, &remainder), 1);
    assert_int_equal(share_sm_groups(&share, 0, &remainder), 0);
    assert_int_equal(share_sm_groups(&share, PLAN_WHOLE, &remainder), 16);
    assert_true(remainder);
    struct share_client all, half;
    arrive(&share, &all, 0, PLAN_WHOLE);
    arrive(&share, &half, 0, 5000);
    assert_int_equal(share_multiprocessors(&share, &all.now), 132);
    assert_int_equal(share_multiprocessors(&share, &half.now), 64);
    assert_int_equal(share_open(&share, 0, 8, 0), -EINVAL);
    assert_int_equal(share_open(&share, 256, 8, 4), -EINVAL);
    assert_int_equal(share_open(&share, 16, 8, 8), -EINVAL);
}

static uint32_t granted(const struct share *share, uint32_t percentage)
{
    struct share_client client;
    struct share copy = *share;
    arrive(&copy, &client, 0, percentage);
    assert_int_equal(share_most(&copy, &client), share_multiprocessors(&copy, &client.now));
    return share_most(&copy, &client);
}

static void no_limit_is_exceeded_but_below_one_sm_group(void **state)
{
    (void)state;
    struct share share;
    assert_int_equal(share_open(&share, 16, 8, 4), 0);
    assert_int_equal(granted(&share, 1), 8);
    assert_int_equal(granted(&share, 606), 8);   /* 7.99 */
    assert_int_equal(granted(&share, 607), 8);   /* 8.01 */
    assert_int_equal(granted(&share, 1000), 12); /* 13: an SM group and the remainder */
    assert_int_equal(granted(&share, 2500), 32); /* 33 */
    assert_int_equal(granted(&share, 9999), 128);
    for (uint32_t percentage = 607; percentage <= PLAN_WHOLE; percentage++)
        assert_true(granted(&share, percentage) <= 132u * percentage / PLAN_WHOLE);
    assert_int_equal(share_open(&share, 54, 2, 0), 0);
    assert_int_equal(granted(&share, PLAN_WHOLE), 108);
    assert_int_equal(granted(&share, 9900), 106);
    assert_int_equal(granted(&share, 100), 2);
}

static void where_nothing_can_be_divided_requests_mean_nothing(void **state)
{
    (void)state;
    struct share share;
    struct share_client clients[4];
    assert_int_equal(share_open(&share, 1, 132, 0), 0);
    for (int i = 0; i < 4; i++) {
        arrive(&share, &clients[i], 5000, 6000);
        share_wants(&share, &clients[i]);
        assert_int_equal(share_most(&share, &clients[i]), 132);
    }
    drain_names(&share);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(bits(&clients[i]), 1);
        share_idle(&share, &clients[i]);
    }
    assert_null(share_named(&share));
}

static void the_remainder_is_for_one_at_a_time(void **state)
{
    (void)state;
    struct share share;
    struct share_client a, b, all;
    assert_int_equal(share_open(&share, 16, 8, 4), 0);
    arrive(&share, &a, 0, 3000);
    arrive(&share, &b, 0, 7000);
    arrive(&share, &all, 0, PLAN_WHOLE);
    assert_int_equal(share_multiprocessors(&share, &a.now), 36);
    assert_int_equal(share_multiprocessors(&share, &b.now), 88);
    assert_int_equal(share_multiprocessors(&share, &all.now), 132);
    assert_int_equal(share_most(&share, &b), 92);
    assert_false(share_set_overlap(&a.now, &b.now));
    share_remove(&share, &a);
    share_wants(&share, &b);
    assert_int_equal(share_multiprocessors(&share, &b.now), 92);
}

static void room_is_used_again(void **state)
{
    (void)state;
    struct share share;
    struct share_client clients[4], fifth, a;
    assert_int_equal(share_open(&share, 16, 8, 4), 0);
    struct share_set all = {{0}};
    for (int i = 0; i < 4; i++) {
        arrive(&share, &clients[i], 0, 2500);
        assert_false(share_set_overlap(&all, &clients[i].now));
        share_set_join(&all, &clients[i].now);
    }
    /* A fifth shares with somebody, on the first of the least loaded. */
    arrive(&share, &fifth, 0, 2500);
    assert_true(share_set_same(&fifth.now, &clients[0].now));
    share_remove(&share, &fifth);
    share_remove(&share, &clients[2]);
    arrive(&share, &a, 0, 2500);
    assert_true(share_set_same(&a.now, &clients[2].now));
}

static void who_gets_less_leaves_where_it_is_crowded(void **state)
{
    (void)state;
    struct share share;
    struct share_client a, b;
    share_open(&share, 8, 2, 0);
    arrive(&share, &a, 0, PLAN_WHOLE);
    arrive(&share, &b, 0, 5000);
    assert_int_equal(bits(&b), 0x0f);
    assert_int_equal(share_update(&share, &a, 0, 5000, &why), 0);
    assert_int_equal(bits(&a), 0xf0);
}

static void limits_overlap_on_the_least_loaded_sm_groups(void **state)
{
    (void)state;
    struct share share;
    struct share_client a, b, c;
    share_open(&share, 8, 2, 0);
    arrive(&share, &a, 0, 5000);
    arrive(&share, &b, 0, 5000);
    arrive(&share, &c, 0, 7500);
    assert_int_equal(bits(&a), 0x0f);
    assert_int_equal(bits(&b), 0xf0);
    assert_int_equal(bits(&c), 0x3f);
}

/* The picture of the contract. */
static void a_request_is_lent_and_taken_back(void **state)
{
    (void)state;
    struct share share;
    struct share_client a, b, c;
    share_open(&share, 8, 2, 0);
    arrive(&share, &a, 5000, 5000);
    arrive(&share, &b, 2500, PLAN_WHOLE);
    share_wants(&share, &a);
    share_wants(&share, &b);
    arrive(&share, &c, 0, 5000);
    share_wants(&share, &c);
    assert_int_equal(bits(&a), 0x0f);
    assert_int_equal(bits(&b), 0xf0);
    assert_int_equal(bits(&c), 0xc0);
    drain_names(&share);
    share_idle(&share, &a);
    assert_int_equal(bits(&b), 0xff);
    assert_int_equal(bits(&c), 0xc3);
    drain_names(&share);
    share_wants(&share, &a);
    assert_int_equal(bits(&a), 0x0f);
    assert_int_equal(bits(&b), 0xf0);
    assert_int_equal(bits(&c), 0xc0);
    assert_ptr_equal(share_named(&share), &b);
    assert_ptr_equal(share_named(&share), &c);
    assert_null(share_named(&share));
    /* Nothing was lent in between: nobody moves. */
    share_idle(&share, &b);
    drain_names(&share);
    share_wants(&share, &b);
    assert_ptr_equal(share_named(&share), &c); /* it had taken b's */
    share_remove(&share, &c);
    share_idle(&share, &b);
    share_wants(&share, &b);
    assert_null(share_named(&share));
}

static void overcommitted_requests_are_refused_with_the_arithmetic(void **state)
{
    (void)state;
    struct share share;
    struct share_client a, b, c = {0};
    share_open(&share, 16, 8, 4);
    arrive(&share, &a, 5000, 5000);
    arrive(&share, &b, 3000, PLAN_WHOLE);
    assert_int_equal(share_add(&share, &c, 4000, 4000, &why), PROTO_ERROR_INVALID_VALUE);
    assert_string_equal(why.text,
                        "threads: 2 other clients there have 12 of the device's 16 groups of "
                        "8 multiprocessors of their own; with the 6 asked for that makes 18: "
                        "ask for 4 at most, or lower another request");
    assert_false(c.present);
    assert_int_equal(share_add(&share, &c, 5000, 4000, &why), PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(share_add(&share, &c, 2500, 4000, &why), 0);
    /* 31 % of 132 are 40.92: 5 SM groups, and 8 + 4 are there. */
    assert_int_equal(share_update(&share, &b, 3100, PLAN_WHOLE, &why), PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(b.request, 3000);
    assert_int_equal(share_update(&share, &c, 2400, 4000, &why), 0);
    assert_int_equal(share_update(&share, &b, 3100, PLAN_WHOLE, &why), 0);
    assert_int_equal(share_set_count(&b.own), 5);
}

static void without_a_free_sm_group_a_client_is_held(void **state)
{
    (void)state;
    struct share share;
    struct share_client a, b, c;
    share_open(&share, 4, 8, 0);
    arrive(&share, &a, 5000, 5000);
    arrive(&share, &b, 5000, 5000);
    arrive(&share, &c, 0, 5000);
    share_wants(&share, &a);
    share_wants(&share, &b);
    share_wants(&share, &c);
    assert_true(share_set_empty(&c.now));
    share_idle(&share, &b);
    assert_int_equal(bits(&c), bits(&b));
    share_wants(&share, &b);
    assert_true(share_set_empty(&c.now));
    share_remove(&share, &a);
    assert_int_equal(bits(&c), 0x3);
}

/* ---- any mix ---- */

enum { CLIENTS = 24 };

static void check_all(const struct share *share, const struct share_client *clients, int step)
{
    uint32_t load[SHARE_SM_GROUPS_MAX] = {0};
    struct share_set owned = {{0}};
    for (int i = 0; i < CLIENTS; i++) {
        const struct share_client *client = &clients[i];
        if (!client->present)
            continue;
        bool whole = share_set_count(&client->now) == share->count + (share->remainder > 0);
        bool all = client->most == share->count && (client->most_remainder || !share->remainder);
        for (uint32_t sm_group = 0; sm_group < share->count && !all; sm_group++)
            load[sm_group] += share_set_has(&client->now, sm_group);
        if (share_set_overlap(&owned, &client->own))
            fail_msg("step %d: two clients own an SM group", step);
        share_set_join(&owned, &client->own);
        struct share_set beyond = client->own, taken = {{0}}, rest;
        share_set_cut(&beyond, &client->now);
        if (!share_set_empty(&beyond))
            fail_msg("step %d: client %d is not on its own SM groups", step, i);
        uint32_t granted = share_multiprocessors(share, &client->now);
        if (granted > share->total * client->limit / PLAN_WHOLE && granted > share->sm_group_size)
            fail_msg("step %d: client %d has %u of %u", step, i, granted, client->limit);
        for (int at = 0; at < CLIENTS; at++)
            if (at != i && clients[at].present && clients[at].wants)
                share_set_join(&taken, &clients[at].own);
        if (share_set_overlap(&taken, &client->now))
            fail_msg("step %d: client %d is on SM groups taken by their owner", step, i);
        if (!client->wants || whole)
            continue;
        /* Nothing lies idle that it could have. */
        rest = taken;
        share_set_join(&rest, &client->now);
        uint32_t sm_groups = 0;
        for (uint32_t sm_group = 0; sm_group < share->count; sm_group++)
            sm_groups += share_set_has(&client->now, sm_group);
        for (uint32_t sm_group = 0; sm_group < share->count && sm_groups < client->most; sm_group++)
            if (!share_set_has(&rest, sm_group))
                fail_msg("step %d: client %d has %u of %u SM groups and SM group %u is free", step,
                         i, sm_groups, client->most, sm_group);
    }
    for (uint32_t sm_group = 0; sm_group < share->count; sm_group++)
        assert_int_equal(load[sm_group], share->load[sm_group]);
}

static void any_mix_keeps_the_promises(void **state)
{
    (void)state;
    static struct share_client clients[CLIENTS];
    static struct share_set known[CLIENTS];
    uint64_t random = 9;
    for (int mix = 0; mix < 300; mix++) {
        struct share share;
        memset(clients, 0, sizeof clients);
        memset(known, 0, sizeof known);
        uint32_t remainder = (uint32_t)(device_random(&random) % 8);
        assert_int_equal(
            share_open(&share, 1 + (uint32_t)(device_random(&random) % 20), 8, remainder), 0);
        for (int step = 0; step < 200; step++) {
            struct share_client *client = &clients[device_random(&random) % CLIENTS];
            uint32_t limit = 1 + (uint32_t)(device_random(&random) % PLAN_WHOLE);
            limit = device_random(&random) % 3 ? limit : PLAN_WHOLE;
            uint32_t request = (uint32_t)(device_random(&random) % (limit / 3 + 1));
            request = device_random(&random) % 2 ? request : 0;
            uint64_t what = device_random(&random) % 8;
            if (!client->present)
                share_add(&share, client, request, limit, &why);
            else if (what == 0)
                share_remove(&share, client);
            else if (what == 1)
                share_update(&share, client, request, limit, &why);
            else if (what < 5)
                share_wants(&share, client);
            else
                share_idle(&share, client);
            check_all(&share, clients, step);
            struct share_client *named;
            while ((named = share_named(&share)))
                known[named - clients] = named->now;
            for (int i = 0; i < CLIENTS; i++)
                assert_true(!clients[i].present || share_set_same(&known[i], &clients[i].now) ||
                            share_set_empty(&clients[i].now));
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
        cmocka_unit_test(room_is_used_again),
        cmocka_unit_test(who_gets_less_leaves_where_it_is_crowded),
        cmocka_unit_test(limits_overlap_on_the_least_loaded_sm_groups),
        cmocka_unit_test(a_request_is_lent_and_taken_back),
        cmocka_unit_test(overcommitted_requests_are_refused_with_the_arithmetic),
        cmocka_unit_test(without_a_free_sm_group_a_client_is_held),
        cmocka_unit_test(any_mix_keeps_the_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
