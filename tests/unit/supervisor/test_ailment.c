/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* How long a device is kept down after errors of its machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "protocol.h"
#include "server/supervisor/device/ailment.h"

#define SECOND UINT64_C(1000000000)
#define START  (1000 * SECOND)

static void errors_of_kernels_keep_no_device_down(void **state)
{
    static const uint32_t errors[] = {PROTO_ERROR_ILLEGAL_ADDRESS, PROTO_ERROR_LAUNCH_FAILED,
                                      PROTO_ERROR_HARDWARE_STACK_ERROR, PROTO_ERROR_WORKER_LOST,
                                      PROTO_ERROR_OUT_OF_MEMORY};
    struct ailment ailment = {0};
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        ailment_note(&ailment, errors[i], START);
    assert_int_equal(ailment_wait(&ailment, START), 0);
}

static void each_further_error_doubles_the_wait_up_to_five_minutes(void **state)
{
    struct ailment ailment = {0};
    uint64_t now = START, expected = SECOND;
    (void)state;
    for (int i = 0; i < 40; i++) {
        ailment_note(&ailment, PROTO_ERROR_ECC_UNCORRECTABLE, now);
        assert_int_equal(ailment_wait(&ailment, now), expected);
        assert_int_equal(ailment_wait(&ailment, now + expected), 0);
        now += expected;
        ailment_recover(&ailment);
        expected = expected < 256 * SECOND ? 2 * expected : 300 * SECOND;
    }
}

static void ten_minutes_of_health_end_it(void **state)
{
    struct ailment ailment = {0};
    (void)state;
    ailment_note(&ailment, PROTO_ERROR_UNKNOWN, START);
    ailment_recover(&ailment);
    ailment_note(&ailment, PROTO_ERROR_UNKNOWN, START + 599 * SECOND);
    assert_int_equal(ailment_wait(&ailment, START + 599 * SECOND), 2 * SECOND);
    ailment_recover(&ailment);
    ailment_note(&ailment, PROTO_ERROR_UNKNOWN, START + 1199 * SECOND);
    assert_int_equal(ailment_wait(&ailment, START + 1199 * SECOND), SECOND);
}

/* The start may fail with any error. */
static void a_start_that_fails_meanwhile_is_a_further_error(void **state)
{
    struct ailment ailment = {0};
    (void)state;
    ailment_note(&ailment, PROTO_ERROR_ECC_UNCORRECTABLE, START);
    ailment_note(&ailment, PROTO_ERROR_WORKER_LOST, START + 700 * SECOND);
    assert_int_equal(ailment_wait(&ailment, START + 700 * SECOND), 2 * SECOND);
    ailment_recover(&ailment);
    ailment_note(&ailment, PROTO_ERROR_WORKER_LOST, START + 703 * SECOND);
    assert_int_equal(ailment_wait(&ailment, START + 703 * SECOND), 0);
}

static void a_device_that_is_gone_is_tried_slowly(void **state)
{
    struct ailment ailment = {0};
    (void)state;
    ailment_note(&ailment, PROTO_ERROR_NO_DEVICE, START);
    assert_int_equal(ailment_wait(&ailment, START), 10 * SECOND);
    ailment_note(&ailment, PROTO_ERROR_NO_DEVICE, START + 10 * SECOND);
    assert_int_equal(ailment_wait(&ailment, START + 10 * SECOND), 20 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_kernels_keep_no_device_down),
        cmocka_unit_test(each_further_error_doubles_the_wait_up_to_five_minutes),
        cmocka_unit_test(ten_minutes_of_health_end_it),
        cmocka_unit_test(a_start_that_fails_meanwhile_is_a_further_error),
        cmocka_unit_test(a_device_that_is_gone_is_tried_slowly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
