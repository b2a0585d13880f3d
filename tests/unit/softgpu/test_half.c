/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* binary16 and bfloat16, against arithmetic on their values that knows no rounding code. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "server/softgpu/exec/exec_half.h"

/* The value of a finite pattern, from the format's definition. */
static double value(uint16_t h, int fraction, int bias)
{
    int exponent = (h & 0x7fff) >> fraction, mantissa = h & ((1 << fraction) - 1);
    double m = exponent ? 1 + ldexp(mantissa, -fraction) : ldexp(mantissa, -fraction);
    double x = ldexp(m, (exponent ? exponent : 1) - bias);
    return h & 0x8000 ? -x : x;
}

static void every_pattern_survives_widening_and_narrowing(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        if ((h & 0x7fff) < 0x7c00) {
            assert_true((double)half_to_float((uint16_t)h) == value((uint16_t)h, 10, 15));
            assert_int_equal(half_from_double((double)half_to_float((uint16_t)h)), h);
        }
        if ((h & 0x7fff) < 0x7f80) {
            assert_true((double)bfloat_to_float((uint16_t)h) == value((uint16_t)h, 7, 127));
            assert_int_equal(bfloat_from_double((double)bfloat_to_float((uint16_t)h)), h);
        }
    }
    assert_true(isnan(half_to_float(0x7e00)) && isinf(half_to_float(0xfc00)));
    assert_int_equal(half_from_double(NAN), 0x7fff);
    assert_int_equal(half_from_double(-INFINITY), 0xfc00);
}

/* Between neighbours a < b: the middle goes to the even one, what is off it to the nearer. */
static void check_between(uint16_t a, int fraction, int bias, uint16_t (*narrow)(double, int))
{
    double low = value(a, fraction, bias), high = value((uint16_t)(a + 1), fraction, bias);
    double middle = low + (high - low) / 2;
    uint16_t even = a & 1 ? (uint16_t)(a + 1) : a, b = (uint16_t)(a + 1);
    assert_int_equal(narrow(middle, FE_TONEAREST), even);
    assert_int_equal(narrow(nextafter(middle, INFINITY), FE_TONEAREST), b);
    assert_int_equal(narrow(nextafter(middle, 0), FE_TONEAREST), a);
    assert_int_equal(narrow(middle, FE_TOWARDZERO), a);
    assert_int_equal(narrow(nextafter(high, 0), FE_DOWNWARD), a);
    assert_int_equal(narrow(nextafter(low, INFINITY), FE_UPWARD), b);
    assert_int_equal(narrow(-nextafter(low, INFINITY), FE_UPWARD), a | 0x8000);
    assert_int_equal(narrow(-nextafter(low, INFINITY), FE_DOWNWARD), b | 0x8000);
}

static void every_gap_rounds_as_its_mode_says(void **state)
{
    (void)state;
    for (uint16_t h = 0; h < 0x7bff; h++)
        check_between(h, 10, 15, half_from_double_mode);
    for (uint16_t h = 0; h < 0x7f7f; h++)
        check_between(h, 7, 127, bfloat_from_double_mode);
}

static void overflow_and_underflow_follow_the_rounding_mode(void **state)
{
    (void)state;
    assert_int_equal(half_from_double(65519.99), 0x7bff);
    assert_int_equal(half_from_double(65520), 0x7c00);
    assert_int_equal(half_from_double_mode(1e300, FE_TOWARDZERO), 0x7bff);
    assert_int_equal(half_from_double_mode(1e300, FE_DOWNWARD), 0x7bff);
    assert_int_equal(half_from_double_mode(-1e300, FE_DOWNWARD), 0xfc00);
    assert_int_equal(half_from_double_mode(0x1p-1074, FE_UPWARD), 1);
    assert_int_equal(half_from_double_mode(-0x1p-1074, FE_UPWARD), 0x8000);
    assert_int_equal(half_from_double(0x1p-25), 0);
    assert_int_equal(half_from_double(nextafter(0x1p-25, 1)), 1);
    assert_int_equal(bfloat_from_double(0x1p-134), 0);
    assert_int_equal(bfloat_from_double(nextafter(0x1p-134, 1)), 1);
}

/* 1 + 2^-8 + 2^-60: a tie for bfloat16 in double, where the last bit is lost. */
static void a_fused_sum_keeps_what_double_cannot_hold(void **state)
{
    (void)state;
    assert_int_equal(bfloat_from_double(add_odd(1 + 0x1p-8, 0x1p-60)), 0x3f81);
    assert_int_equal(bfloat_from_double(add_odd(1 + 0x1p-8, -0x1p-60)), 0x3f80);
    assert_int_equal(bfloat_from_double(add_odd(1 + 0x1p-8, 0)), 0x3f80);
    assert_int_equal(bfloat_from_double(add_odd(-1 - 0x1p-8, -0x1p-60)), 0xbf81);
    assert_true(isinf(add_odd(INFINITY, 1)) && isnan(add_odd(INFINITY, -INFINITY)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_survives_widening_and_narrowing),
        cmocka_unit_test(every_gap_rounds_as_its_mode_says),
        cmocka_unit_test(overflow_and_underflow_follow_the_rounding_mode),
        cmocka_unit_test(a_fused_sum_keeps_what_double_cannot_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
