/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* dialect: shares and sizes, and what could be read as either. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/limits/dialect.h"
#include "common/units.h"

typedef int parse(const char *text, size_t length, struct dialect_amount *amount);

static void is(parse *read, const char *text, enum dialect_unit unit, uint64_t value)
{
    struct dialect_amount amount = {DIALECT_UNSET, 77};
    int result = read(text, strlen(text), &amount);
    if (result != 0 || amount.unit != unit || amount.value != value)
        fail_msg("\"%s\" gave %d, unit %d, %llu", text, result, amount.unit,
                 (unsigned long long)amount.value);
}

static void fails(parse *read, const char *text, int want)
{
    struct dialect_amount amount = {DIALECT_UNSET, 77};
    int result = read(text, strlen(text), &amount);
    if (result != want || amount.unit != DIALECT_UNSET || amount.value != 77)
        fail_msg("\"%s\" gave %d, not %d", text, result, want);
}

static void shares_say_what_they_are(void **state)
{
    (void)state;
    is(dialect_parse_share, "25%", DIALECT_SHARE, 2500);
    is(dialect_parse_share, "0.01%", DIALECT_SHARE, 1);
    is(dialect_parse_share, "100%", DIALECT_SHARE, 10000);
    is(dialect_parse_share, "0.25", DIALECT_SHARE, 2500);
    is(dialect_parse_share, "0.0001", DIALECT_SHARE, 1);
    is(dialect_parse_share, "1.0", DIALECT_SHARE, 10000);
    static const char *const neither[] = {"25", "1",  "0",       "",     "%",    "25 %", "-1%",
                                          ".5", "1.", "0.00001", "0.5x", "25%%", "1.5.0"};
    for (size_t i = 0; i < sizeof neither / sizeof *neither; i++)
        fails(dialect_parse_share, neither[i], -EINVAL);
    static const char *const outside[] = {"0%", "0.0", "100.01%", "101%", "1.0001", "2.0"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        fails(dialect_parse_share, outside[i], -ERANGE);
}

static void amounts_are_sizes_or_shares(void **state)
{
    (void)state;
    is(dialect_parse_amount, "4G", DIALECT_BYTES, UINT64_C(4) << 30);
    is(dialect_parse_amount, "1.5G", DIALECT_BYTES, UINT64_C(3) << 29);
    is(dialect_parse_amount, "101", DIALECT_BYTES, 101);
    is(dialect_parse_amount, "50%", DIALECT_SHARE, 5000);
    is(dialect_parse_amount, "0.5", DIALECT_SHARE, 5000);
    fails(dialect_parse_amount, "0", -ERANGE);
    /* A per cent value whose sign was forgotten. */
    fails(dialect_parse_amount, "1", -ERANGE);
    fails(dialect_parse_amount, "90", -ERANGE);
    fails(dialect_parse_amount, "100", -ERANGE);
    fails(dialect_parse_amount, "2.0", -ERANGE);
    fails(dialect_parse_amount, "much", -EINVAL);
    fails(dialect_parse_amount, "18446744073709551615", -ERANGE);
    is(dialect_parse_size, "0", DIALECT_BYTES, 0);
    fails(dialect_parse_size, "50%", -EINVAL);
}

static void nothing_is_read_behind_the_length(void **state)
{
    (void)state;
    struct dialect_amount amount;
    static const char text[4] = {'5', '0', '%', '%'};
    assert_int_equal(dialect_parse_share(text, 3, &amount), 0);
    assert_int_equal(amount.value, 5000);
    assert_int_equal(dialect_parse_share(text, 4, &amount), -EINVAL);
    assert_int_equal(dialect_parse_share(text, 0, &amount), -EINVAL);
}

static void amounts_are_written_as_read(void **state)
{
    (void)state;
    char text[UNITS_TEXT];
    assert_string_equal(dialect_format((struct dialect_amount){DIALECT_SHARE, 1250}, text),
                        "12.5%");
    assert_string_equal(dialect_format((struct dialect_amount){DIALECT_BYTES, 1 << 20}, text),
                        "1M");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_say_what_they_are),
        cmocka_unit_test(amounts_are_sizes_or_shares),
        cmocka_unit_test(nothing_is_read_behind_the_length),
        cmocka_unit_test(amounts_are_written_as_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
