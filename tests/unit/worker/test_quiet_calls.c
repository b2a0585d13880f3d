/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* When calls that wait for the device ask for a window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/ipc/timeline.h"
#include "common/util.h"
#include "server/worker/quiet_calls.h"
#include "server/worker/wake.h"

#define SECOND UINT64_C(1000000000)

static struct wake wake;
static struct quiet_calls calls;
static struct quiet_call call; /* the queue has it until the teardown */
static int made;

static void make(struct quiet_call *made_now)
{
    (void)made_now;
    made++;
}

static int setup(void **state)
{
    (void)state;
    made = 0;
    wake_open(&wake);
    quiet_calls_open(&calls, &wake);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    while (quiet_calls_make_next(&calls))
        ;
    while (quiet_calls_collect(&calls))
        ;
    quiet_calls_close(&calls);
    wake_close(&wake);
    return 0;
}

static struct quiet_calls_view look(uint64_t now)
{
    struct quiet_calls_view view;
    quiet_calls_look(&calls, now, &view);
    return view;
}

/* Nobody waits for it, but a charge does. */
static void a_call_that_rides_along_asks_after_a_second(void **state)
{
    (void)state;
    call = (struct quiet_call){.make = make, .caller = {.client = 1, .owner = 1, .level = 2}};
    uint64_t before = timeline_now();
    quiet_calls_defer(&calls, &call, false);
    uint64_t after = timeline_now();
    struct quiet_calls_view view = look(before + SECOND - 1);
    assert_true(view.any);
    assert_false(view.asks);
    assert_in_range(view.asks_next, before + SECOND, after + SECOND);
    assert_false(quiet_calls_waits(&calls, 1));
    view = look(after + SECOND);
    assert_true(view.asks);
    assert_int_equal(view.level, 2);
    assert_in_range(view.since, before + SECOND, after + SECOND);
}

static void a_call_that_somebody_waits_for_asks_at_once(void **state)
{
    (void)state;
    call = (struct quiet_call){.make = make, .caller = {.client = 1, .owner = 1}};
    quiet_calls_defer(&calls, &call, true);
    assert_true(look(timeline_now()).asks);
    assert_true(quiet_calls_waits(&calls, 1));
}

static void a_patient_call_never_asks(void **state)
{
    (void)state;
    call = (struct quiet_call){.make = make, .patient = true};
    quiet_calls_defer(&calls, &call, false);
    struct quiet_calls_view view = look(timeline_now() + 3600 * SECOND);
    assert_true(view.any);
    assert_false(view.asks);
    assert_true(quiet_calls_make_next(&calls));
    assert_int_equal(made, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_call_that_rides_along_asks_after_a_second),
        T(a_call_that_somebody_waits_for_asks_at_once),
        T(a_patient_call_never_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
