/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The waits of users whose kernels fault again and again, on a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/supervisor/device/offenders.h"

#define SECOND UINT64_C(1000000000)

static uint64_t wait_of(const struct offenders *offenders, uid_t uid, uint64_t now)
{
    uint32_t faults;
    return offenders_wait(offenders, uid, now, SECOND, &faults);
}

static void the_second_fault_makes_wait_and_each_further_one_twice_as_long(void **state)
{
    (void)state;
    static const uint64_t seconds[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300};
    struct offenders offenders = {0};
    uint64_t now = 5;
    assert_int_equal(wait_of(&offenders, 7, now), 0);
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        offenders_note(&offenders, 7, now);
        assert_int_equal(wait_of(&offenders, 7, now), seconds[i] * SECOND);
        assert_int_equal(wait_of(&offenders, 7, now + SECOND / 2),
                         seconds[i] ? seconds[i] * SECOND - SECOND / 2 : 0);
        assert_int_equal(wait_of(&offenders, 7, now + 301 * SECOND), 0);
        assert_int_equal(wait_of(&offenders, 8, now), 0);
        now += 3 * SECOND;
    }
    offenders_close(&offenders);
}

static void ten_minutes_without_a_fault_are_a_new_beginning(void **state)
{
    (void)state;
    struct offenders offenders = {0};
    offenders_note(&offenders, 7, 1);
    offenders_note(&offenders, 7, 2);
    offenders_note(&offenders, 7, 2 + 600 * SECOND);
    assert_int_equal(wait_of(&offenders, 7, 2 + 600 * SECOND), 0);
    offenders_note(&offenders, 7, 2 + 1199 * SECOND);
    assert_int_equal(wait_of(&offenders, 7, 2 + 1199 * SECOND), SECOND);
    offenders_close(&offenders);
}

/* Rows of those who are forgotten serve others, so the table is as long as it has to be. */
static void many_users_are_kept_apart(void **state)
{
    (void)state;
    struct offenders offenders = {0};
    for (uid_t uid = 0; uid < 100; uid++)
        for (uid_t i = 0; i <= uid % 3; i++)
            offenders_note(&offenders, uid, 1);
    for (uid_t uid = 0; uid < 100; uid++)
        assert_int_equal(wait_of(&offenders, uid, 1), uid % 3 * SECOND);
    for (uid_t uid = 100; uid < 200; uid++)
        offenders_note(&offenders, uid, 601 * SECOND);
    assert_int_equal(offenders.count, 100);
    offenders_close(&offenders);
}

static void no_wait_is_configured_with_zero(void **state)
{
    (void)state;
    struct offenders offenders = {0};
    uint32_t faults;
    for (int i = 0; i < 9; i++)
        offenders_note(&offenders, 7, 1);
    assert_int_equal(offenders_wait(&offenders, 7, 1, 0, &faults), 0);
    assert_int_equal(faults, 9);
    assert_int_equal(offenders_wait(&offenders, 7, 1, UINT64_MAX, &faults), 300 * SECOND);
    offenders_close(&offenders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_fault_makes_wait_and_each_further_one_twice_as_long),
        cmocka_unit_test(ten_minutes_without_a_fault_are_a_new_beginning),
        cmocka_unit_test(many_users_are_kept_apart),
        cmocka_unit_test(no_wait_is_configured_with_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
