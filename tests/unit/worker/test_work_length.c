/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "server/scheduler/quiet.h"
#include "server/worker/client/work_length.h"

#define MS UINT64_C(1000000)
#define T0 (1000 * MS)

static struct work_length length;
static struct work_span span;

static int reset(void **state)
{
    (void)state;
    length = (struct work_length){0};
    span = (struct work_span){0};
    return 0;
}

static void unknown_work_is_taken_for_50_ms_each(void **state)
{
    (void)state;
    work_length_begin(&span, 0, T0);
    struct work_expected expected = work_length_expect(&length, &span, 2, 1, T0 + 10 * MS);
    assert_int_equal(expected.left_ns, 90 * MS);
    assert_false(expected.overdue);
    assert_false(work_length_expect(&length, &span, 2, 1, T0 + 80 * MS).overdue);
    assert_true(work_length_expect(&length, &span, 2, 1, T0 + 81 * MS).overdue);
}

static void lengths_are_learnt_from_one_end_to_the_next(void **state)
{
    (void)state;
    work_length_begin(&span, 4, T0);
    work_length_reach(&length, &span, 5, T0 + 8 * MS);
    work_length_reach(&length, &span, 6, T0 + 16 * MS);
    assert_int_equal(length.mean_ns, 8 * MS);
    assert_int_equal(length.peak_ns, 8 * MS);
    assert_int_equal(work_length_expect(&length, &span, 3, 1, T0 + 18 * MS).left_ns, 22 * MS);
}

/* Lengths of 8 ms, but for one of 24 ms: a command is likely to end after the mean, and one that
 * has not by then in the middle of what the longest leaves. */
static void the_likely_end_is_the_means_and_then_moves_to_the_longest(void **state)
{
    (void)state;
    work_length_begin(&span, 0, T0);
    work_length_reach(&length, &span, 1, T0 + 24 * MS);
    for (uint64_t i = 0; i < 16; i++)
        work_length_reach(&length, &span, 2 + i, T0 + (32 + 8 * i) * MS);
    uint64_t last = span.started_at, mean = length.mean_ns, peak = length.peak_ns;
    assert_true(mean > 8 * MS && mean < 12 * MS && peak > mean + 2 * MS);
    assert_int_equal(work_length_expect(&length, &span, 1, 1, last).likely_ns, mean);
    assert_int_equal(work_length_expect(&length, &span, 3, 1, last + MS).likely_ns, 3 * mean - MS);
    assert_int_equal(work_length_expect(&length, &span, 1, 1, last + mean).likely_ns,
                     (peak - mean) / 2);
}

static void as_many_fit_as_the_mean_goes_into_the_time(void **state)
{
    (void)state;
    assert_int_equal(work_length_fit(&length, 100 * MS), 1);
    work_length_begin(&span, 0, T0);
    work_length_reach(&length, &span, 1, T0 + 3 * MS);
    assert_int_equal(work_length_fit(&length, 0), 1);
    assert_int_equal(work_length_fit(&length, 5 * MS), 1);
    assert_int_equal(work_length_fit(&length, 9 * MS), 3);
}

/* Else the time in which a stream had nothing would count as its next command's. */
static void time_without_work_is_no_length(void **state)
{
    (void)state;
    work_length_begin(&span, 0, T0);
    work_length_reach(&length, &span, 1, T0 + 2 * MS);
    work_length_begin(&span, 1, T0 + 900 * MS);
    work_length_reach(&length, &span, 2, T0 + 902 * MS);
    assert_int_equal(length.peak_ns, 2 * MS);
}

static void the_longest_is_remembered_for_a_while(void **state)
{
    (void)state;
    work_length_begin(&span, 0, T0);
    work_length_reach(&length, &span, 1, T0 + 100 * MS);
    work_length_reach(&length, &span, 2, T0 + 101 * MS);
    assert_true(length.peak_ns > 90 * MS);
    for (uint64_t i = 3; i < 300; i++)
        work_length_reach(&length, &span, i, T0 + (98 + i) * MS);
    assert_true(length.peak_ns < 5 * MS);
}

static void of_a_batch_no_end_is_seen_before_its_last(void **state)
{
    (void)state;
    work_length_begin(&span, 0, T0);
    work_length_reach(&length, &span, 8, T0 + 8 * MS);
    assert_false(work_length_expect(&length, &span, 40, 32, T0 + 50 * MS).overdue);
    assert_true(work_length_expect(&length, &span, 40, 1, T0 + 50 * MS).overdue);
    /* Late work is not thought to end at once. */
    assert_int_equal(work_length_expect(&length, &span, 2, 2, T0 + 15 * MS).left_ns, MS / 4);
}

/* How long launches stand still beside a kernel that never ends, which began `before` ms ago when a
 * load is asked for. usual_ms: how long the client's kernels took until then; 0: unknown. */
static uint64_t stand_still(uint64_t usual_ms, uint64_t before)
{
    struct quiet quiet;
    struct quiet_settings settings;
    uint64_t asked = T0 + before * MS, stood = 0;
    reset(NULL);
    work_length_begin(&span, 0, T0 - usual_ms * MS);
    if (usual_ms)
        work_length_reach(&length, &span, 1, T0);
    quiet_defaults(&settings);
    quiet_begin(&quiet, &settings, asked);
    for (uint64_t now = asked; now < asked + 20000 * MS; now += MS) {
        struct work_expected expected = work_length_expect(&length, &span, 1, 1, now);
        struct quiet_work work = {.client = 1,
                                  .left_ns = expected.left_ns,
                                  .likely_ns = expected.likely_ns,
                                  .overdue = expected.overdue};
        struct quiet_scene scene = {
            .works = &work, .count = 1, .asked = true, .user = 1, .asked_at = asked};
        quiet_look(&quiet, &scene, now);
        stood += quiet.state == QUIET_DRAINING ? MS : 0;
    }
    return stood;
}

/* docs/sharing.md: once, for one and a half times the expectation and 5 ms: 80 ms if it is unknown.
 */
static void launches_stand_still_once_beside_a_kernel_that_never_ends(void **state)
{
    (void)state;
    static const uint64_t usual_ms[] = {0, 20, 100, 500};
    for (size_t i = 0; i < sizeof usual_ms / sizeof *usual_ms; i++) {
        uint64_t expected = usual_ms[i] ? usual_ms[i] : 50, most = 0;
        for (uint64_t before = 0; before < 1000; before += 7) {
            uint64_t stood = stand_still(usual_ms[i], before);
            most = stood > most ? stood : most;
        }
        print_message("kernels of %llu ms: %llu ms\n", (unsigned long long)usual_ms[i],
                      (unsigned long long)(most / MS));
        assert_true(most <= (expected + expected / 2 + 5) * MS);
        assert_true(most >= expected * MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(unknown_work_is_taken_for_50_ms_each, reset),
        cmocka_unit_test_setup(lengths_are_learnt_from_one_end_to_the_next, reset),
        cmocka_unit_test_setup(the_likely_end_is_the_means_and_then_moves_to_the_longest, reset),
        cmocka_unit_test_setup(as_many_fit_as_the_mean_goes_into_the_time, reset),
        cmocka_unit_test_setup(time_without_work_is_no_length, reset),
        cmocka_unit_test_setup(the_longest_is_remembered_for_a_while, reset),
        cmocka_unit_test_setup(of_a_batch_no_end_is_seen_before_its_last, reset),
        cmocka_unit_test_setup(launches_stand_still_once_beside_a_kernel_that_never_ends, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
