/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "server/scheduler/claim.h"

#define MS UINT64_C(1000000)

/* Of a quarter of the time, in plans of 5 s, with this much time to its credit. */
static struct claim claim_of(int64_t ns)
{
    return (struct claim){.credit = {.parts = ns * (int64_t)PLAN_WHOLE, .rate = 2500}};
}

static int64_t owed_ns(const struct claim *claim)
{
    return claim->credit.parts / (int64_t)PLAN_WHOLE;
}

static struct plan plan_of_5_s(void)
{
    struct plan plan;
    plan_set(&plan, 250 * MS, 500, 0);
    return plan;
}

static void a_pause_begins_once(void **state)
{
    (void)state;
    struct claim claim = claim_of(0);
    assert_false(claim_is_busy(&claim));
    claim_set_busy(&claim, true, 5);
    assert_true(claim_is_busy(&claim));
    claim_set_busy(&claim, false, 7);
    claim_set_busy(&claim, false, 9);
    assert_false(claim_is_busy(&claim));
    assert_int_equal(claim.paused_since, 7);
}

static void a_busy_claim_grows_by_its_part(void **state)
{
    (void)state;
    struct plan plan = plan_of_5_s();
    struct claim claim = claim_of(0);
    claim_set_busy(&claim, true, 0);
    claim_settle(&plan, &claim, 400 * MS);
    assert_int_equal(owed_ns(&claim), 100 * MS);
}

/* As if it had the device: a quarter comes and the whole is charged. */
static void what_is_owed_lapses_in_a_pause(void **state)
{
    (void)state;
    struct plan plan = plan_of_5_s();
    struct claim claim = claim_of(400 * MS);
    claim_settle(&plan, &claim, 100 * MS);
    assert_int_equal(owed_ns(&claim), 325 * MS);
    assert_int_equal(claim_forgotten_at(&plan, &claim), 500 * MS);
    claim_settle(&plan, &claim, 500 * MS - 1);
    assert_true(claim.credit.parts > 0);
    claim_settle(&plan, &claim, 500 * MS);
    assert_int_equal(claim.credit.parts, 0);
}

static void debt_is_worked_off_in_a_pause(void **state)
{
    (void)state;
    struct plan plan = plan_of_5_s();
    struct claim claim = claim_of(-100 * (int64_t)MS);
    claim_settle(&plan, &claim, 200 * MS);
    assert_int_equal(owed_ns(&claim), -50 * (int64_t)MS);
    claim_settle(&plan, &claim, 600 * MS);
    assert_int_equal(claim.credit.parts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_begins_once),
        cmocka_unit_test(a_busy_claim_grows_by_its_part),
        cmocka_unit_test(what_is_owed_lapses_in_a_pause),
        cmocka_unit_test(debt_is_worked_off_in_a_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
