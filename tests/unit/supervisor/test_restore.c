/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The order in which the next worker is told of held sessions. */
#include "tests/unit/supervisor/fake.h"

#include "server/supervisor/session/life/restore.h"

static struct session one, other;

static int compare(bool one_busy, uint64_t one_heard, bool other_busy, uint64_t other_heard)
{
    one.restore.busy = one_busy;
    one.heard_at = one_heard;
    other.restore.busy = other_busy;
    other.heard_at = other_heard;
    int there = session_restore_compare(&one, &other);
    int back = session_restore_compare(&other, &one);
    assert_true((there > 0) == (back < 0) && (there < 0) == (back > 0));
    return there;
}

static void those_that_work_come_first(void **state)
{
    (void)state;
    assert_true(compare(true, 1, false, 100) < 0);
    assert_true(compare(true, 100, false, 1) < 0);
    assert_true(compare(false, UINT64_MAX, true, 0) > 0);
}

static void among_equals_the_latest_request_counts(void **state)
{
    (void)state;
    assert_true(compare(true, 2, true, 1) < 0);
    assert_true(compare(false, 2, false, 1) < 0);
    assert_true(compare(false, 0, false, UINT64_MAX) > 0);
    assert_int_equal(compare(false, 7, false, 7), 0);
    assert_int_equal(compare(true, 7, true, 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_work_come_first),
        cmocka_unit_test(among_equals_the_latest_request_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
