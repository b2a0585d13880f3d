/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Sums over spans against a count of every nanosecond. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/programs/bench/span.h"

enum { SPANS = 12, END = 100 };

static void sums_are_those_of_a_count(void **state)
{
    (void)state;
    unsigned seed = 7;
    for (int mix = 0; mix < 2000; mix++) {
        struct span spans[SPANS];
        size_t count = (size_t)(rand_r(&seed) % (SPANS + 1));
        uint64_t from = (uint64_t)(rand_r(&seed) % END), to = (uint64_t)(rand_r(&seed) % END);
        for (size_t i = 0; i < count; i++) {
            spans[i].begin = (uint64_t)(rand_r(&seed) % END);
            spans[i].end = spans[i].begin + (uint64_t)(rand_r(&seed) % 20);
        }
        uint64_t sum = 0, single = 0, any = 0;
        for (uint64_t at = from; at < to; at++) {
            uint64_t here = 0;
            for (size_t i = 0; i < count; i++)
                here += spans[i].begin <= at && at < spans[i].end;
            sum += here;
            single += here == 1;
            any += here > 0;
        }
        assert_int_equal(span_sum(spans, count, from, to), sum);
        assert_int_equal(span_single(spans, count, from, to), single);
        assert_int_equal(span_any(spans, count, from, to), any);
    }
}

/* Spans of one stream: each begins after the one before it has ended. */
static void short_gaps_between_a_streams_spans_count(void **state)
{
    (void)state;
    unsigned seed = 11;
    for (int mix = 0; mix < 2000; mix++) {
        struct span spans[SPANS];
        size_t count = (size_t)(rand_r(&seed) % (SPANS + 1));
        uint64_t from = (uint64_t)(rand_r(&seed) % END), to = (uint64_t)(rand_r(&seed) % END);
        uint64_t gap = (uint64_t)(rand_r(&seed) % 6), last = 0, sum = 0;
        bool taken[3 * END] = {false};
        for (size_t i = 0; i < count; i++) {
            spans[i].begin = last + (uint64_t)(rand_r(&seed) % 9);
            spans[i].end = spans[i].begin + 1 + (uint64_t)(rand_r(&seed) % 9);
            for (uint64_t at = spans[i].begin; at < spans[i].end; at++)
                taken[at] = true;
            for (uint64_t at = last; i && spans[i].begin - last <= gap && at < spans[i].begin; at++)
                taken[at] = true;
            last = spans[i].end;
        }
        for (uint64_t at = from; at < to; at++)
            sum += taken[at];
        assert_int_equal(span_sum_joined(spans, count, from, to, gap), sum);
    }
}

static void percentiles_are_by_nearest_rank(void **state)
{
    (void)state;
    double values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = (i * 7) % 1000;
    assert_true(span_percentile(values, 1000, 99) == 989);
    assert_true(span_percentile(values, 1000, 50) == 499);
    assert_true(span_percentile(values, 1000, 100) == 999);
    assert_true(span_percentile(values, 1, 99) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_a_count),
        cmocka_unit_test(short_gaps_between_a_streams_spans_count),
        cmocka_unit_test(percentiles_are_by_nearest_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
