/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* units: what people write, at the edges of what fits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/units.h"

static void size_is(const char *text, uint64_t want)
{
    uint64_t bytes = 12345;
    int result = units_parse_size(text, strlen(text), &bytes);
    if (result != 0 || bytes != want)
        fail_msg("\"%s\" gave %d and %llu, not %llu", text, result, (unsigned long long)bytes,
                 (unsigned long long)want);
}

static void size_fails(const char *text, int want)
{
    uint64_t bytes = 12345;
    int result = units_parse_size(text, strlen(text), &bytes);
    if (result != want || bytes != 12345)
        fail_msg("\"%s\" gave %d (value %llu), not %d", text, result, (unsigned long long)bytes,
                 want);
}

static void sizes_with_every_suffix(void **state)
{
    (void)state;
    size_is("0", 0);
    size_is("1048576", 1048576);
    size_is("17B", 17);
    static const char *const suffixes[] = {"K", "KB", "KiB", "k", "kb", "kib"};
    for (unsigned i = 0; i < 6; i++) {
        char text[16];
        snprintf(text, sizeof text, "64%s", suffixes[i]);
        size_is(text, 64 * 1024);
        for (char *c = text; *c; c++)
            *c = *c == 'K' ? 'M' : *c == 'k' ? 'm' : *c;
        size_is(text, 64 * 1048576);
    }
    size_is("1G", 1073741824);
    size_is("1GB", 1073741824);
    size_is("512MB", 536870912);
    size_is("2T", UINT64_C(2199023255552));
    size_is("2TiB", UINT64_C(2199023255552));
}

static void sizes_with_a_fraction_are_whole_bytes(void **state)
{
    (void)state;
    size_is("1.5G", 1610612736);
    size_is("0.5K", 512);
    size_is("1.0", 1);
    size_is("2.000M", 2097152);
    size_is("0.0009765625K", 1);
    size_is("0.1K", 102); /* 102.4 */
    size_is("0.9T", UINT64_C(989560464998));
    size_fails("1.5", -EINVAL);
    size_is("0.0009765626K", 1);
    size_is("0.0009K", 0);
    size_fails("1.5B", -EINVAL);
    size_fails("1.", -EINVAL);
    size_fails(".5G", -EINVAL);
    size_fails("1.0000000000000000000G", -EINVAL); /* more digits than anybody writes */
}

static void sizes_at_the_largest(void **state)
{
    (void)state;
    size_is("18446744073709551614", UINT64_MAX - 1);
    size_is("18446744073709551615", UINT64_MAX);
    size_fails("18446744073709551616", -ERANGE);
    size_fails("99999999999999999999999999", -ERANGE);
    size_is("16777215T", UINT64_C(16777215) << 40);
    size_fails("16777216T", -ERANGE);
    size_is("18014398509481983K", UINT64_C(18014398509481983) << 10);
    size_fails("18014398509481984K", -ERANGE);
    size_is("16777215.9990234375T", (UINT64_C(16777215) << 40) + (UINT64_C(1023) << 30));
    size_fails("18446744073709551615T", -ERANGE);
}

static void malformed_sizes_are_refused(void **state)
{
    (void)state;
    static const char *const garbage[] = {
        "",     "G",    "-1",  "+1", " 1",   "1 ", "1 G", "0x10", "1e9", "1GG",  "1Gi",   "1BB",
        "1KBB", "1KiK", "1iB", "1P", "1,5G", "١",  "1\n", "1K\t", "nan", "1..5", "1.5.5",
    };
    for (unsigned i = 0; i < sizeof garbage / sizeof garbage[0]; i++)
        size_fails(garbage[i], -EINVAL);
    /* A text that goes on after its length, as items of a list do. */
    uint64_t bytes;
    assert_int_equal(units_parse_size("1G,2G", 2, &bytes), 0);
    assert_int_equal(bytes, 1073741824);
    assert_int_equal(units_parse_size("12\0", 3, &bytes), -EINVAL);
}

static void percentages(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        uint32_t value;
    } rows[] = {
        {"1", 0, 100},
        {"100", 0, 10000},
        {"12.5", 0, 1250},
        {"99.99", 0, 9999},
        {"1.01", 0, 101},
        {"100.00", 0, 10000},
        {"050", 0, 5000},
        {"0", -ERANGE, 0},
        {"0.01", 0, 1},
        {"0.00", -ERANGE, 0},
        {"100.01", -ERANGE, 0},
        {"101", -ERANGE, 0},
        {"18446744073709551615", -ERANGE, 0},
        {"184467440737095517", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"12.345", -EINVAL, 0},
        {"50%", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"-5", -EINVAL, 0},
        {"5.", -EINVAL, 0},
        {".5", -EINVAL, 0},
        {"fifty", -EINVAL, 0},
        {"1e1", -EINVAL, 0},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t value = 0;
        int result = units_parse_percentage(rows[i].text, strlen(rows[i].text), &value);
        if (result != rows[i].result || value != rows[i].value)
            fail_msg("\"%s\" gave %d and %u", rows[i].text, result, value);
    }
}

static void numbers_at_their_most(void **state)
{
    (void)state;
    uint64_t number = 7;
    assert_int_equal(units_parse_number("1000", 4, 1000, &number), 0);
    assert_int_equal(number, 1000);
    assert_int_equal(units_parse_number("1001", 4, 1000, &number), -ERANGE);
    assert_int_equal(units_parse_number("18446744073709551615", 20, UINT64_MAX, &number), 0);
    assert_true(number == UINT64_MAX);
    assert_int_equal(units_parse_number("18446744073709551616", 20, UINT64_MAX, &number), -ERANGE);
    assert_int_equal(units_parse_number("1.0", 3, 10, &number), -EINVAL);
    assert_int_equal(units_parse_number("1K", 2, 10000, &number), -EINVAL);
}

static void sizes_written_are_read_back(void **state)
{
    (void)state;
    char text[UNITS_TEXT];
    assert_string_equal(units_format_size(0, text), "0");
    assert_string_equal(units_format_size(1073741824, text), "1G");
    assert_string_equal(units_format_size(1610612736, text), "1536M");
    assert_string_equal(units_format_size(1048577, text), "1048577B");
    assert_string_equal(units_format_size(UINT64_MAX, text), "18446744073709551615B");
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int around = -1; around <= 1; around++) {
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)around;
            size_is(units_format_size(value, text), value);
        }
    }
}

static void sizes_for_people(void **state)
{
    (void)state;
    char text[UNITS_TEXT];
    assert_string_equal(units_format_bytes(0, text), "0 B");
    assert_string_equal(units_format_bytes(1023, text), "1023 B");
    assert_string_equal(units_format_bytes(1024, text), "1 KiB");
    assert_string_equal(units_format_bytes(1536, text), "1.5 KiB");
    assert_string_equal(units_format_bytes(1048575, text), "1 MiB");
    assert_string_equal(units_format_bytes(536870912, text), "512 MiB");
    assert_string_equal(units_format_bytes(UINT64_MAX, text), "16 EiB");
    assert_string_equal(units_format_bytes(UINT64_C(1) << 50, text), "1 PiB");
}

static void percentages_written(void **state)
{
    (void)state;
    char text[UNITS_TEXT];
    for (uint32_t value = 1; value <= 10000; value++) {
        uint32_t back = 0;
        units_format_percentage(value, text);
        assert_int_equal(units_parse_percentage(text, strlen(text), &back), 0);
        assert_int_equal(back, value);
    }
    assert_string_equal(units_format_percentage(1250, text), "12.5");
    assert_string_equal(units_format_percentage(1205, text), "12.05");
}

static void duration_is(const char *text, uint64_t want, const char *written)
{
    uint64_t ns = 12345;
    char back[UNITS_TEXT];
    int result = units_parse_duration(text, strlen(text), &ns);
    if (result != 0 || ns != want)
        fail_msg("\"%s\" gave %d and %llu", text, result, (unsigned long long)ns);
    assert_string_equal(units_format_duration(ns, back), written);
}

static void duration_fails(const char *text, int want)
{
    uint64_t ns = 12345;
    int result = units_parse_duration(text, strlen(text), &ns);
    if (result != want || ns != 12345)
        fail_msg("\"%s\" gave %d (value %llu), not %d", text, result, (unsigned long long)ns, want);
}

static void durations_with_every_unit(void **state)
{
    (void)state;
    duration_is("7ns", 7, "7ns");
    duration_is("1500us", 1500000, "1500us");
    duration_is("250ms", 250000000, "250ms");
    duration_is("0.25s", 250000000, "250ms");
    duration_is("30s", UINT64_C(30000000000), "30s");
    duration_is("60s", UINT64_C(60000000000), "1min");
    duration_is("1.5min", UINT64_C(90000000000), "90s");
    duration_is("1h", UINT64_C(3600000000000), "1h");
    duration_is("0ms", 0, "0s");
    duration_is("18446744073709551615ns", UINT64_MAX, "18446744073709551615ns");
}

static void malformed_durations_are_refused(void **state)
{
    (void)state;
    static const char *const none[] = {"",   "5",    "ms",   "5 ms",  "-5ms",  "5MS",
                                       "5m", "5mss", "5.ms", "0.5ns", "1e3ms", "5ms "};
    for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++)
        duration_fails(none[i], -EINVAL);
    duration_fails("18446744073709551616ns", -ERANGE);
    duration_fails("5124096h", -ERANGE);
    /* The text ends where its length says. */
    uint64_t ns;
    assert_int_equal(units_parse_duration("5ms", 2, &ns), -EINVAL);
    assert_int_equal(units_parse_duration("5ms,", 3, &ns), 0);
    assert_int_equal(ns, 5000000);
}

static void a_bare_number_is_seconds_where_that_is_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } rows[] = {{"60", 60 * UNITS_SECOND},
                {"60s", 60 * UNITS_SECOND},
                {"1min", 60 * UNITS_SECOND},
                {"0.5", UNITS_SECOND / 2},
                {"1500ms", 3 * UNITS_SECOND / 2}};
    uint64_t ns;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(units_parse_seconds(rows[i].text, strlen(rows[i].text), &ns), 0);
        assert_int_equal(ns, rows[i].ns);
    }
    static const char *const none[] = {"", "-1", "5m", "s", "1e3", " 5", "."};
    for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(units_parse_seconds(none[i], strlen(none[i]), &ns), -EINVAL);
}

/* Sentences name each unit that is read, and no other. */
static void the_units_are_named_as_they_are_read(void **state)
{
    (void)state;
    char units[] = UNITS_DURATIONS, text[8], *rest = units;
    uint64_t ns = 0, last = 0;
    unsigned count = 0;
    for (char *unit; (unit = strtok_r(rest, ", ", &rest)); count++, last = ns) {
        snprintf(text, sizeof text, "1%s", unit);
        assert_int_equal(units_parse_duration(text, strlen(text), &ns), 0);
        assert_true(ns > last);
    }
    assert_int_equal(count, 6);
}

static void times_are_rounded_to_tenths(void **state)
{
    (void)state;
    static const struct {
        uint64_t ns, passed, to_come;
    } rows[] = {{0, 0, 100000000},
                {1, 0, 100000000},
                {99999999, 0, 100000000},
                {100000000, 100000000, 200000000},
                {1234567890, 1200000000, 1300000000}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(units_tenth_passed(rows[i].ns), rows[i].passed);
        assert_int_equal(units_tenth_to_come(rows[i].ns), rows[i].to_come);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_with_every_suffix),
        cmocka_unit_test(durations_with_every_unit),
        cmocka_unit_test(malformed_durations_are_refused),
        cmocka_unit_test(sizes_with_a_fraction_are_whole_bytes),
        cmocka_unit_test(sizes_at_the_largest),
        cmocka_unit_test(malformed_sizes_are_refused),
        cmocka_unit_test(percentages),
        cmocka_unit_test(numbers_at_their_most),
        cmocka_unit_test(sizes_written_are_read_back),
        cmocka_unit_test(sizes_for_people),
        cmocka_unit_test(percentages_written),
        cmocka_unit_test(a_bare_number_is_seconds_where_that_is_allowed),
        cmocka_unit_test(the_units_are_named_as_they_are_read),
        cmocka_unit_test(times_are_rounded_to_tenths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
