/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A last SM group that is larger than the others, as an H100 has: 15 of 8 multiprocessors and one
 * of 12. The oracle has the size of each SM group in a list, and tries all sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/util.h"
#include "server/scheduler/plan.h"
#include "server/scheduler/sm/sm_allocation.h"
#include "tests/programs/simulate/device.h"

enum { CLIENTS = 24 };

static const struct shape {
    uint32_t count, size, rest; /* as sm_allocation_open has them */
} shapes[] = {{15, 8, 12}, {7, 8, 12}, {7, 8, 8}, {4, 2, 3},  {1, 8, 9},
              {9, 8, 15},  {5, 8, 0},  {6, 8, 4}, {4, 8, 20}, {3, 8, 30}};

static struct error why;
static struct sm_allocation allocation;
static struct sm_allocation_client clients[CLIENTS];

static uint32_t total_of(const struct shape *shape)
{
    return shape->count * shape->size + shape->rest;
}

/* The oracle: one by one. */
static uint32_t size_of(const struct shape *shape, const struct sm_group_set *set)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= shape->count; i++)
        if (sm_group_set_has(set, i))
            sum += i == shape->count ? shape->rest : shape->size;
    return sum;
}

/* The oracle: the most multiprocessors that any set within the percentage has, but those of one SM
 * group at least. */
static uint32_t best_of(const struct shape *shape, uint32_t percentage)
{
    const uint32_t groups = shape->count + (shape->rest > 0);
    uint32_t best = shape->size;
    for (uint32_t chosen = 0; chosen < 1u << groups; chosen++) {
        const struct sm_group_set set = {{chosen}};
        const uint32_t size = size_of(shape, &set);
        if (size * PLAN_WHOLE <= total_of(shape) * percentage)
            best = max(best, size);
    }
    return best;
}

static void start(const struct shape *shape)
{
    memset(clients, 0, sizeof clients);
    assert_int_equal(sm_allocation_open(&allocation, shape->count, shape->size, shape->rest), 0);
    assert_int_equal(allocation.total, total_of(shape));
}

static const struct sm_allocation_client *arrive(int i, uint32_t request, uint32_t limit)
{
    clients[i] = (struct sm_allocation_client){0};
    if (sm_allocation_add(&allocation, &clients[i], NULL, request, limit, &why))
        fail_msg("client %d with a request of %u: %s", i, request, why.text);
    sm_allocation_wants(&allocation, &clients[i]);
    return &clients[i];
}

static uint32_t has(const struct shape *shape, const struct sm_allocation_client *client)
{
    return size_of(shape, &client->now);
}

static void a_client_has_the_best_set_within_its_limit(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const struct shape *shape = &shapes[s];
        for (uint32_t percentage = 1; percentage <= PLAN_WHOLE;
             percentage += percentage == 1 || shape->count < 10 ? 33 : 1111) {
            start(shape);
            const struct sm_allocation_client *client = arrive(0, 0, percentage);
            const uint32_t size = has(shape, client), best = best_of(shape, percentage);
            assert_int_equal(sm_allocation_max(&allocation, client), size);
            /* From two groups' worth on, fewer SM groups can have more multiprocessors. */
            if (shape->rest < 2 * shape->size ? size != best : size > best)
                fail_msg("%u of %u and %u, %u: it has %u, not %u", shape->count, shape->size,
                         shape->rest, percentage, size, best);
        }
    }
}

static void the_whole_is_for_a_limit_of_all_alone(void **state)
{
    (void)state;
    const struct shape *h100 = &shapes[0];
    start(h100);
    assert_int_equal(has(h100, arrive(0, 0, PLAN_WHOLE)), 132);
    assert_int_equal(has(h100, arrive(1, 0, 9999)), 124); /* 131 */
    assert_int_equal(has(h100, arrive(2, 0, 9700)), 124); /* 128 */
    assert_int_equal(has(h100, arrive(3, 0, 9300)), 120); /* 122, which the 12 would exceed */
    assert_false(sm_group_set_has(&clients[3].now, 15));
}

/* 66 multiprocessors are 8 SM groups of 8, and 7 and the 12 are 68. */
static void two_halves_have_nothing_in_common(void **state)
{
    (void)state;
    const struct shape *h100 = &shapes[0];
    for (uint32_t request = 0; request <= 5000; request += 5000) {
        start(h100);
        assert_int_equal(has(h100, arrive(0, request, 5000)), 64);
        assert_int_equal(has(h100, arrive(1, request, 5000)), 68);
        assert_int_equal(sm_allocation_max(&allocation, &clients[1]), 64);
        assert_false(sm_group_set_overlaps(&clients[0].now, &clients[1].now));
    }
}

/* The other client is met anyway: 85 and 91 % overlap. */
static void no_limit_is_exceeded_for_fewer_neighbours(void **state)
{
    (void)state;
    const struct shape *h100 = &shapes[0];
    start(h100);
    assert_int_equal(has(h100, arrive(0, 0, 8500)), 112);
    assert_int_equal(has(h100, arrive(1, 0, 9100)), 120);
    assert_int_equal(has(h100, arrive(2, 0, 5000)), 64);
    assert_false(sm_group_set_has(&clients[2].now, 15));
}

/* Requests of 100 % in total fit, in any order. A client with more than it asked for has the last
 * SM group, since all others have an owner. */
static void requests_of_all_fit(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int mix = 0; mix < 3000; mix++) {
        const struct shape *shape = &shapes[device_random(&random) % 8];
        struct sm_group_set owned = {{0}};
        uint32_t left = PLAN_WHOLE;
        start(shape);
        for (int i = 0; i < CLIENTS && left * total_of(shape) / PLAN_WHOLE >= shape->size; i++) {
            const uint32_t least =
                (shape->size * PLAN_WHOLE + total_of(shape) - 1) / total_of(shape);
            if (least > left)
                break;
            const uint32_t request =
                least + (uint32_t)(device_random(&random) % (left - least + 1));
            const struct sm_allocation_client *client = arrive(i, request, request);
            const uint32_t size = size_of(shape, &client->own);
            assert_false(sm_group_set_overlaps(&owned, &client->own));
            if (size * PLAN_WHOLE > request * total_of(shape)) {
                struct sm_group_set rest = {{(UINT64_C(1) << shape->count) - 1}};
                sm_group_set_cut(&rest, &owned);
                sm_group_set_cut(&rest, &client->own);
                assert_true(sm_group_set_has(&client->own, shape->count));
                assert_true(sm_group_set_is_empty(&rest));
            }
            sm_group_set_join(&owned, &client->own);
            left -= request;
        }
    }
}

/* An account's clients are on no more than the account has room for. */
static void an_account_has_the_best_set_within_its_limit(void **state)
{
    (void)state;
    const struct shape *h100 = &shapes[0];
    for (uint32_t limit = 700; limit < PLAN_WHOLE; limit += 600) {
        const uint32_t more = min(limit + 500, (uint32_t)PLAN_WHOLE);
        const uint32_t limits[2] = {PLAN_WHOLE, more};
        struct sm_allocation_account account = {.number = 1};
        start(h100);
        assert_int_equal(sm_allocation_account_set(&allocation, &account, 0, limit, &why), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(
                sm_allocation_add(&allocation, &clients[i], &account, 0, limits[i], &why), 0);
            sm_allocation_wants(&allocation, &clients[i]);
        }
        const uint32_t size = size_of(h100, &account.now), best = best_of(h100, limit);
        assert_int_equal(size, best);
        for (int i = 0; i < 2; i++)
            if (sm_allocation_max(&allocation, &clients[i]) != best ||
                has(h100, &clients[i]) != best)
                fail_msg("%u: client %d has %u, not %u", limit, i, has(h100, &clients[i]), best);
        for (int i = 0; i < 2; i++)
            sm_allocation_remove(&allocation, &clients[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_has_the_best_set_within_its_limit),
        cmocka_unit_test(the_whole_is_for_a_limit_of_all_alone),
        cmocka_unit_test(two_halves_have_nothing_in_common),
        cmocka_unit_test(no_limit_is_exceeded_for_fewer_neighbours),
        cmocka_unit_test(requests_of_all_fit),
        cmocka_unit_test(an_account_has_the_best_set_within_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
