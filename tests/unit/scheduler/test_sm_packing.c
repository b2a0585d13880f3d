/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* SM groups on which requests of time fit, too. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/scheduler/plan.h"
#include "tests/support/seed.h"
#include "server/scheduler/sm/sm_allocation.h"
#include "server/scheduler/sm/sm_packing.h"
#include "tests/programs/simulate/device.h"

enum { CLIENTS = 6, ACCOUNTS = 2 };

static struct error why;
static struct sm_allocation allocation;
static struct sm_allocation_client clients[CLIENTS];
static struct sm_allocation_account accounts[ACCOUNTS];

static void start(uint32_t count, uint32_t remainder)
{
    memset(clients, 0, sizeof clients);
    memset(accounts, 0, sizeof accounts);
    assert_int_equal(sm_allocation_open(&allocation, count, 8, remainder), 0);
    sm_allocation_bind_time(&allocation, true);
}

static struct sm_allocation_client *arrive(int i, struct sm_allocation_account *account,
                                           uint32_t limit, uint32_t time)
{
    clients[i] = (struct sm_allocation_client){.time_request = time};
    assert_int_equal(sm_allocation_add(&allocation, &clients[i], account, 0, limit, &why), 0);
    return &clients[i];
}

/* The sum of the requests among the clients that overlap with this one, directly or not. */
static uint32_t sum_around(int first)
{
    bool in[CLIENTS] = {false}, counted[ACCOUNTS] = {false}, more = true;
    uint32_t sum = 0;
    in[first] = true;
    while (more) {
        more = false;
        for (int i = 0; i < CLIENTS; i++)
            for (int j = 0; j < CLIENTS; j++)
                if (in[i] && !in[j] && clients[j].present &&
                    sm_group_set_overlaps(&clients[i].now, &clients[j].now))
                    in[j] = more = true;
    }
    for (int i = 0; i < CLIENTS; i++) {
        const struct sm_allocation_account *account = in[i] ? clients[i].account : NULL;
        if (!in[i])
            continue;
        if (!account || !account->time_request) {
            sum += clients[i].time_request;
        } else if (!counted[account - accounts]) {
            sum += account->time_request;
            counted[account - accounts] = true;
        }
    }
    return sum;
}

static void half_and_half_and_most_of_a_half_fit_in_any_order(void **state)
{
    (void)state;
    static const uint32_t orders[3][3] = {
        {5000, 9000, 5000}, {5000, 5000, 9000}, {9000, 5000, 5000}};
    for (int order = 0; order < 3; order++) {
        start(8, 0);
        for (int i = 0; i < 3; i++) {
            arrive(i, NULL, 5000, orders[order][i]);
            for (int at = 0; at <= i; at++) {
                assert_int_equal(sm_group_set_count(&clients[at].now), 4);
                assert_true(sum_around(at) <= PLAN_WHOLE);
            }
        }
    }
}

static void a_client_without_work_moves_first(void **state)
{
    (void)state;
    start(8, 0);
    struct sm_allocation_client *a = arrive(0, NULL, 5000, 5000), *b = arrive(1, NULL, 5000, 5000);
    assert_false(sm_group_set_overlaps(&a->now, &b->now));
    sm_allocation_wants(&allocation, a);
    struct sm_group_set before = a->now;
    while (sm_allocation_next_changed(&allocation))
        continue;
    struct sm_allocation_client *c = arrive(2, NULL, 5000, 9000);
    assert_memory_equal(&a->now, &before, sizeof before);
    assert_memory_equal(&b->now, &before, sizeof before);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), c);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), b);
    assert_null(sm_allocation_next_changed(&allocation));
}

static void nobody_moves_where_time_does_not_bind(void **state)
{
    (void)state;
    start(8, 0);
    sm_allocation_bind_time(&allocation, false);
    struct sm_allocation_client *a = arrive(0, NULL, 5000, 5000), *b = arrive(1, NULL, 5000, 5000);
    arrive(2, NULL, 5000, 9000);
    assert_false(sm_group_set_overlaps(&a->now, &b->now));
    assert_int_equal(sum_around(2), 14000);
    sm_allocation_bind_time(&allocation, true);
    assert_memory_equal(&a->now, &b->now, sizeof a->now);
    assert_int_equal(sum_around(2), 9000);
}

static void owners_stay_where_they_are(void **state)
{
    (void)state;
    start(8, 0);
    clients[0] = (struct sm_allocation_client){.time_request = 5000};
    assert_int_equal(sm_allocation_add(&allocation, &clients[0], NULL, 5000, 5000, &why), 0);
    struct sm_group_set own = clients[0].own;
    arrive(1, NULL, 5000, 5000);
    arrive(2, NULL, 5000, 9000); /* fits beside nobody, and the rest is owned */
    assert_memory_equal(&clients[0].now, &own, sizeof own);
    assert_true(sum_around(2) > PLAN_WHOLE);
    for (int i = 0; i < 3; i++)
        assert_false(clients[i].moves);
}

/* ---- any mix ---- */

static uint32_t groups_of(uint32_t limit)
{
    uint32_t groups = allocation.total * limit / PLAN_WHOLE / 8;
    return groups ? groups : 1;
}

/* Whether there is an arrangement: tries each division of the clients from `at` on into groups. */
static bool has_arrangement(int at, int *group_of, int groups)
{
    if (at < CLIENTS && !clients[at].present)
        return has_arrangement(at + 1, group_of, groups);
    if (at < CLIENTS) {
        for (group_of[at] = 0; group_of[at] <= groups; group_of[at]++)
            if (has_arrangement(at + 1, group_of, group_of[at] == groups ? groups + 1 : groups))
                return true;
        return false;
    }
    uint32_t needed = 0;
    for (int group = 0; group < groups; group++) {
        uint32_t most = 0, time = 0;
        bool counted[ACCOUNTS] = {false};
        for (int i = 0; i < CLIENTS; i++) {
            if (!clients[i].present || group_of[i] != group)
                continue;
            const struct sm_allocation_account *account = clients[i].account;
            bool of_account = account && account->time_request;
            most = groups_of(clients[i].limit) > most ? groups_of(clients[i].limit) : most;
            time += !of_account                   ? clients[i].time_request
                    : counted[account - accounts] ? 0
                                                  : account->time_request;
            if (of_account)
                counted[account - accounts] = true;
        }
        if (time > PLAN_WHOLE)
            return false;
        needed += most;
    }
    return needed <= allocation.count;
}

static void nobody_is_refused_what_fits(void **state)
{
    (void)state;
    uint64_t random = seed_number("TEST_SEED", 1);
    int refused = 0, moved = 0;
    for (int mix = 0; mix < 400; mix++) {
        start(2 + (uint32_t)(device_random(&random) % 7), 0);
        for (int at = 0; at < ACCOUNTS; at++)
            accounts[at].time_request =
                (uint32_t)(device_random(&random) % 2) * (uint32_t)(device_random(&random) % 6000);
        for (int step = 0; step < 40; step++) {
            int i = (int)(device_random(&random) % CLIENTS), group_of[CLIENTS];
            if (clients[i].present && device_random(&random) % 2) {
                sm_allocation_remove(&allocation, &clients[i]);
                continue;
            }
            if (clients[i].present) {
                (device_random(&random) % 2 ? sm_allocation_wants
                                            : sm_allocation_idle)(&allocation, &clients[i]);
                continue;
            }
            uint64_t of = device_random(&random) % (2 * ACCOUNTS);
            arrive(i, of < ACCOUNTS ? &accounts[of] : NULL,
                   1 + (uint32_t)(device_random(&random) % 7000),
                   (uint32_t)(device_random(&random) % 9000));
            bool fits = has_arrangement(0, group_of, 0);
            if ((sum_around(i) <= PLAN_WHOLE) != fits)
                fail_msg("mix %d, step %d: client %d %s", mix, step, i,
                         fits ? "is refused, and there is a place" : "has a place that is none");
            assert_int_equal(sm_packing_fits(&allocation, &clients[i]), fits);
            if (!fits)
                sm_allocation_remove(&allocation, &clients[i]);
            refused += !fits;
            struct sm_allocation_client *named;
            while ((named = sm_allocation_next_changed(&allocation)))
                moved += named != &clients[i];
            for (int other = 0; other < CLIENTS; other++)
                if (clients[other].present) {
                    assert_true(sum_around(other) <= PLAN_WHOLE);
                    assert_int_equal(sm_group_set_count(&clients[other].now),
                                     groups_of(clients[other].limit));
                }
        }
    }
    assert_true(refused > 100);
    assert_true(moved > 100);
}

static void many_clients_are_placed_soon(void **state)
{
    (void)state;
    static struct sm_allocation_client many[100];
    start(16, 4);
    for (int i = 0; i < 100; i++) {
        many[i] = (struct sm_allocation_client){.time_request = 900};
        assert_int_equal(sm_allocation_add(&allocation, &many[i], NULL, 0, 700, &why), 0);
        assert_true(sm_packing_fits(&allocation, &many[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_and_half_and_most_of_a_half_fit_in_any_order),
        cmocka_unit_test(a_client_without_work_moves_first),
        cmocka_unit_test(nobody_moves_where_time_does_not_bind),
        cmocka_unit_test(owners_stay_where_they_are),
        cmocka_unit_test(nobody_is_refused_what_fits),
        cmocka_unit_test(many_clients_are_placed_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
