/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The lesser and the greater, the struct around a member, arithmetic at the end of its range. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/util.h"

struct inner {
    int a, b;
};
struct outer {
    char before[3];
    struct inner inner;
    uint64_t after;
};

static unsigned calls;

static uint32_t counted(uint32_t value)
{
    calls++;
    return value;
}

static void min_and_max_choose(void **state)
{
    (void)state;
    assert_int_equal(min(1u, 2u), 1);
    assert_int_equal(min(2u, 1u), 1);
    assert_int_equal(max(1u, 2u), 2);
    assert_int_equal(max(2u, 1u), 2);
    assert_int_equal(min(-1, 1), -1);
    assert_int_equal(max(-1, 1), 1);
    assert_true(max(UINT64_MAX, UINT64_C(1)) == UINT64_MAX);
    assert_true(min(0.5, 0.25) == 0.25);
}

static void one_choice_may_stand_in_another(void **state)
{
    (void)state;
    assert_int_equal(min(min(3, 2), min(5, 4)), 2);
    assert_int_equal(max(min(3, 2), max(1, min(9, 7))), 7);
}

static void each_argument_is_evaluated_once(void **state)
{
    (void)state;
    calls = 0;
    assert_int_equal(min(counted(7), counted(8)), 7);
    assert_int_equal(max(counted(7), counted(8)), 8);
    assert_int_equal(calls, 4);
}

static void container_of_leads_back(void **state)
{
    (void)state;
    struct outer outer = {.after = 5};
    assert_ptr_equal(container_of(&outer.inner, struct outer, inner), &outer);
    assert_ptr_equal(container_of(&outer.inner.b, struct outer, inner.b), &outer);
    assert_ptr_equal(container_of((void *)&outer.after, struct outer, after), &outer);
    const struct inner *inner = &outer.inner;
    assert_true(container_of(inner, const struct outer, inner)->after == 5);
}

static void sums_differences_and_products_stop_at_the_end(void **state)
{
    (void)state;
    assert_true(saturating_add(1, 2) == 3);
    assert_true(saturating_add(UINT64_MAX - 1, 1) == UINT64_MAX);
    assert_true(saturating_add(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(saturating_sub(3, 2) == 1);
    assert_true(saturating_sub(2, 2) == 0);
    assert_true(saturating_sub(2, 3) == 0);
    assert_true(saturating_mul(3, 4) == 12);
    assert_true(saturating_mul(UINT64_MAX, 0) == 0);
    assert_true(saturating_mul(UINT64_C(1) << 32, UINT64_C(1) << 31) == UINT64_C(1) << 63);
    assert_true(saturating_mul(UINT64_C(1) << 32, UINT64_C(1) << 32) == UINT64_MAX);
    assert_true(saturating_double(50, 0, 10000) == 50);
    assert_true(saturating_double(50, 7, 10000) == 6400);
    assert_true(saturating_double(50, 8, 10000) == 10000);
    assert_true(saturating_double(50, UINT32_MAX, 10000) == 10000);
    assert_true(saturating_double(1, 63, UINT64_MAX) == UINT64_C(1) << 63);
    assert_true(saturating_double(1, 64, UINT64_MAX) == UINT64_MAX);
    assert_true(saturating_double(0, 64, UINT64_MAX) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(min_and_max_choose),
        cmocka_unit_test(one_choice_may_stand_in_another),
        cmocka_unit_test(each_argument_is_evaluated_once),
        cmocka_unit_test(container_of_leads_back),
        cmocka_unit_test(sums_differences_and_products_stop_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
