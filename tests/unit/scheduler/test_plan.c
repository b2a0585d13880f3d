/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "server/scheduler/plan.h"
#include "tests/programs/simulate/device.h"

#define MS UINT64_C(1000000)

static void a_plan_is_lease_by_precision(void **state)
{
    (void)state;
    struct plan plan;
    plan_set(&plan, 250 * MS, 500, 7);
    assert_int_equal(plan.length_ns, 5000 * MS);
    assert_int_equal(plan.shortest_ns, 5 * MS);
    assert_int_equal(plan_end(&plan, 7), 7 + 5000 * MS);
    assert_int_equal(plan_end(&plan, 6 + 5000 * MS), 7 + 5000 * MS);
    assert_int_equal(plan_end(&plan, 7 + 5000 * MS), 7 + 10000 * MS);
    assert_int_equal(plan_share(&plan, 3300), 1650 * MS);
    assert_int_equal(plan_share(&plan, 3333), 1666500000);
    plan_set(&plan, 5 * MS, 500, 0);
    assert_int_equal(plan.length_ns, 100 * MS);
    assert_int_equal(plan.shortest_ns, MS / 2);
    plan_set(&plan, 10000 * MS, 100, 0);
    assert_int_equal(plan.length_ns, 1000000 * MS);
}

/* The parts of a million uneven stretches come to the same part of their sum. */
static void credit_loses_no_part_over_many_stretches(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (uint32_t rate = 1; rate <= PLAN_WHOLE; rate += 1 + rate / 3) {
        struct credit credit = {.rate = rate};
        uint64_t now = 0, charged = 0;
        for (int i = 0; i < 50000; i++) {
            now += device_random(&random) % 1000003;
            plan_credit_settle(&credit, now, INT64_MAX);
            if (credit.parts >= (int64_t)(1000 * PLAN_WHOLE)) {
                uint64_t ns = device_random(&random) % 1500000;
                plan_credit_charge(&credit, ns);
                charged += ns;
            }
        }
        __int128 exact = (__int128)now * rate - (__int128)charged * PLAN_WHOLE;
        assert_true(exact == credit.parts);
    }
}

static void debt_is_paid_to_the_nanosecond(void **state)
{
    (void)state;
    struct credit credit = {.rate = 1000, .at = 50};
    assert_int_equal(plan_credit_ready(&credit), 50);
    plan_credit_charge(&credit, 550 * MS);
    assert_int_equal(plan_credit_ready(&credit), 50 + 5500 * MS);
    plan_credit_settle(&credit, 49 + 5500 * MS, INT64_MAX);
    assert_true(credit.parts < 0);
    plan_credit_settle(&credit, 50 + 5500 * MS, INT64_MAX);
    assert_int_equal(credit.parts, 0);
    credit.rate = 3333; /* 1 ns is 10000 parts: 3.0003 ns */
    plan_credit_charge(&credit, 1);
    assert_int_equal(plan_credit_ready(&credit), credit.at + 4);
    credit.rate = 0;
    assert_int_equal(plan_credit_ready(&credit), PLAN_NEVER);
}

static void idleness_saves_up_one_lease_at_most(void **state)
{
    (void)state;
    struct plan plan;
    plan_set(&plan, 250 * MS, 500, 0);
    struct credit credit = {.rate = 5000};
    plan_credit_settle(&credit, 1000000 * MS, plan_burst(&plan, 5000));
    assert_int_equal(credit.parts / PLAN_WHOLE, 250 * MS);
    credit = (struct credit){.rate = 100};
    plan_credit_settle(&credit, 1000000 * MS, plan_burst(&plan, 100));
    assert_int_equal(credit.parts / PLAN_WHOLE, 50 * MS);
    /* Years of it don't overflow. */
    credit = (struct credit){.rate = PLAN_WHOLE};
    plan_credit_settle(&credit, UINT64_MAX / 2, INT64_MAX);
    assert_true(credit.parts > 0);
}

static void a_budget_ends_with_the_plan(void **state)
{
    (void)state;
    struct plan plan;
    plan_set(&plan, 250 * MS, 500, 0);
    struct credit credit = {.rate = 3300};
    assert_int_equal(plan_credit_budget(&credit, &plan, 0), 1650 * MS);
    /* Six leases later, 150 ms are left. */
    plan_credit_charge(&credit, 1500 * MS);
    plan_credit_settle(&credit, 4546 * MS, INT64_MAX);
    assert_int_equal(plan_credit_budget(&credit, &plan, 4546 * MS), 150 * MS);
    /* A client that comes in the middle has half. */
    credit = (struct credit){.rate = 3300, .at = 2500 * MS};
    assert_int_equal(plan_credit_budget(&credit, &plan, 2500 * MS), 825 * MS);
    plan_credit_charge(&credit, 900 * MS);
    assert_int_equal(plan_credit_budget(&credit, &plan, 2500 * MS), 0);
}

static void the_smallest_share_is_owed_a_lease_in_time(void **state)
{
    (void)state;
    struct plan plan;
    plan_set(&plan, 250 * MS, 500, 0);
    assert_int_equal(plan_owed(&plan, 5000) / PLAN_WHOLE, 2500 * MS);
    assert_int_equal(plan_share(&plan, 5), 2500000);
    assert_int_equal(plan_owed(&plan, 5) / PLAN_WHOLE, 5 * MS);
    assert_int_equal(plan_owed(&plan, 0) / PLAN_WHOLE, 5 * MS);
}

static void a_debt_without_end_stays_a_debt(void **state)
{
    (void)state;
    struct credit credit = {.rate = 1};
    for (int i = 0; i < 100; i++) {
        plan_credit_charge(&credit, UINT64_MAX);
        assert_true(credit.parts < 0);
        plan_credit_settle(&credit, credit.at + 1, INT64_MAX);
        assert_true(plan_credit_ready(&credit) > credit.at + UINT64_C(100000000000000));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_lease_by_precision),
        cmocka_unit_test(credit_loses_no_part_over_many_stretches),
        cmocka_unit_test(debt_is_paid_to_the_nanosecond),
        cmocka_unit_test(idleness_saves_up_one_lease_at_most),
        cmocka_unit_test(a_budget_ends_with_the_plan),
        cmocka_unit_test(the_smallest_share_is_owed_a_lease_in_time),
        cmocka_unit_test(a_debt_without_end_stays_a_debt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
