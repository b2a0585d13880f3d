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
    is(dialect_parse_amount, "101B", DIALECT_BYTES, 101);
    is(dialect_parse_amount, "1000000", DIALECT_BYTES, 1000000);
    is(dialect_parse_amount, "50%", DIALECT_SHARE, 5000);
    is(dialect_parse_amount, "0.5", DIALECT_SHARE, 5000);
    fails(dialect_parse_amount, "0", -ERANGE);
    /* A per cent value whose sign was forgotten. */
    fails(dialect_parse_amount, "1", -ERANGE);
    fails(dialect_parse_amount, "90", -ERANGE);
    fails(dialect_parse_amount, "100", -ERANGE);
    fails(dialect_parse_amount, "100B", -ERANGE);
    /* A size whose unit was forgotten. */
    fails(dialect_parse_amount, "101", -ERANGE);
    fails(dialect_parse_amount, "999999", -ERANGE);
    fails(dialect_parse_size, "1", -ERANGE);
    fails(dialect_parse_size, "500", -ERANGE);
    fails(dialect_parse_size, "999999", -ERANGE);
    is(dialect_parse_size, "1000000", DIALECT_BYTES, 1000000);
    is(dialect_parse_size, "1B", DIALECT_BYTES, 1);
    fails(dialect_parse_amount, "2.0", -ERANGE);
    fails(dialect_parse_amount, "much", -EINVAL);
    fails(dialect_parse_amount, "18446744073709551615", -ERANGE);
    is(dialect_parse_size, "0", DIALECT_BYTES, 0);
    fails(dialect_parse_size, "50%", -EINVAL);
}

static void form_is(const char *text, bool share, const char *want)
{
    char room[DIALECT_FORM_ROOM];
    assert_string_equal(dialect_form("the form", share, text, strlen(text), room), want);
}

static void a_missing_unit_is_named_with_its_remedy(void **state)
{
    (void)state;
    form_is("500", true, "a size with its unit (alone it is 500 bytes; did you mean 500M?)");
    form_is("90", true, "a size with its unit (alone it is 90 bytes; did you mean 90M, or 90%?)");
    form_is("90", false, "a size with its unit (alone it is 90 bytes; did you mean 90M?)");
    form_is("999999", true,
            "a size with its unit (alone it is 999999 bytes; did you mean 999999M?)");
    static const char *const others[] = {"", "0", "500M", "500B", "1000000", "-5", "half", "5%"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        form_is(others[i], true, "the form");
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
        cmocka_unit_test(a_missing_unit_is_named_with_its_remedy),
        cmocka_unit_test(nothing_is_read_behind_the_length),
        cmocka_unit_test(amounts_are_written_as_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
