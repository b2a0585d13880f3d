/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The order in which calls of the driver are made: by owners' turns, a client's own one after the
 * other, long ones in steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/util.h"
#include "server/worker/calls/driver_calls.h"
#include "server/worker/calls/wake.h"

static struct wake wake;
static struct driver_calls calls;

struct step {
    struct driver_call call;
    char name;
    int left;       /* further steps */
    uint64_t pause; /* ns between two of them */
};

static char made[64];
static int count;

static bool make(struct driver_call *call)
{
    struct step *step = container_of(call, struct step, call);
    made[count++] = step->name;
    call->not_before = clock_now() + step->pause;
    return step->left-- > 0;
}

static int setup(void **state)
{
    (void)state;
    wake_open(&wake);
    driver_calls_open(&calls, &wake);
    count = 0;
    memset(made, 0, sizeof made);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    driver_calls_close(&calls);
    return 0;
}

static void leave(struct step *step, char name, uint32_t client, uint32_t owner, int left)
{
    *step = (struct step){.call = {.make = make, .caller = {.client = client, .owner = owner}},
                          .name = name,
                          .left = left};
    driver_calls_leave(&calls, &step->call);
}

static void expect(const char *order)
{
    while (driver_calls_make_next(&calls))
        ;
    assert_string_equal(made, order);
}

static void calls_of_a_client_are_made_in_their_order(void **state)
{
    (void)state;
    struct step a, b, c;
    leave(&a, 'a', 1, 1, 2);
    leave(&b, 'b', 1, 1, 0);
    leave(&c, 'c', 1, 1, 1);
    expect("aaabcc");
    assert_ptr_equal(driver_calls_collect(&calls), &a.call);
    assert_ptr_equal(driver_calls_collect(&calls), &b.call);
    assert_ptr_equal(driver_calls_collect(&calls), &c.call);
    assert_null(driver_calls_collect(&calls));
}

static void owners_take_turns(void **state)
{
    (void)state;
    struct step long_one, others[3], last;
    leave(&long_one, 'a', 1, 1, 3);
    leave(&others[0], 'b', 2, 1, 0);
    leave(&others[1], 'c', 3, 2, 0);
    leave(&others[2], 'd', 3, 2, 0);
    leave(&last, 'e', 4, 3, 0);
    /* Each owner once, then the first again, which has two clients. */
    expect("acebdaaa");
}

static void clients_of_one_owner_take_turns(void **state)
{
    (void)state;
    struct step a, b;
    leave(&a, 'a', 1, 1, 3);
    leave(&b, 'b', 2, 1, 3);
    expect("abababab");
}

static void a_call_that_comes_meanwhile_is_not_kept_behind_a_long_one(void **state)
{
    (void)state;
    struct step a, b;
    leave(&a, 'a', 1, 1, 5);
    driver_calls_make_next(&calls);
    driver_calls_make_next(&calls);
    leave(&b, 'b', 2, 1, 0);
    expect("aaabaaa");
}

static void a_step_that_is_put_off_keeps_no_other(void **state)
{
    (void)state;
    struct step late, other;
    leave(&late, 'a', 1, 1, 1);
    leave(&other, 'b', 2, 2, 1);
    late.pause = 500000000;
    uint64_t begun = clock_now();
    struct driver_call *done;
    while (!(done = driver_calls_collect(&calls)))
        assert_true(driver_calls_make_next(&calls));
    assert_ptr_equal(done, &other.call);
    assert_true(driver_calls_wait(&calls));
    assert_true(clock_now() - begun >= late.pause);
    expect("abba");
}

/* Nothing keeps the worker's end waiting. */
static void a_stopped_queue_puts_nothing_off(void **state)
{
    (void)state;
    struct step late;
    leave(&late, 'a', 1, 1, 1);
    late.pause = UINT64_C(3600000000000);
    assert_true(driver_calls_make_next(&calls));
    assert_false(driver_calls_make_next(&calls));
    driver_calls_stop(&calls);
    expect("aa");
}

static void a_stopped_queue_is_made_by_hand(void **state)
{
    (void)state;
    struct step a;
    driver_calls_stop(&calls);
    leave(&a, 'a', 1, 1, 1);
    assert_false(driver_calls_wait(&calls));
    expect("aa");
    assert_ptr_equal(driver_calls_collect(&calls), &a.call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_of_a_client_are_made_in_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(owners_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(clients_of_one_owner_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_comes_meanwhile_is_not_kept_behind_a_long_one,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_that_is_put_off_keeps_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_queue_puts_nothing_off, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stopped_queue_is_made_by_hand, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
