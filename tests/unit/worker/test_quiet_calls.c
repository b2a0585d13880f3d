/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* When calls that wait for the device ask for a window, and in which order a window makes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/util.h"
#include "server/worker/calls/quiet_calls.h"
#include "server/worker/calls/wake.h"

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
    while (quiet_calls_make_next(&calls, 0, NULL))
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

static void note_asking(void *context, const struct quiet_caller *caller, uint64_t asks_at)
{
    assert_int_equal(caller->level, 2);
    *(uint64_t *)context = asks_at;
}

/* Nobody waits for it, but a charge does. */
static void a_call_that_rides_along_asks_after_a_second(void **state)
{
    (void)state;
    call = (struct quiet_call){.make = make, .caller = {.client = 1, .owner = 1, .level = 2}};
    uint64_t before = clock_now();
    quiet_calls_defer(&calls, &call, false);
    uint64_t after = clock_now();
    struct quiet_calls_view view = look(before + SECOND - 1);
    assert_true(view.any);
    assert_false(view.asks);
    assert_in_range(view.asks_next, before + SECOND, after + SECOND);
    assert_false(quiet_calls_waits(&calls, 1));
    view = look(after + SECOND);
    assert_true(view.asks);
    uint64_t since = 0;
    quiet_calls_each_asking(&calls, before + SECOND - 1, note_asking, &since);
    assert_int_equal(since, 0);
    quiet_calls_each_asking(&calls, after + SECOND, note_asking, &since);
    assert_in_range(since, before + SECOND, after + SECOND);
}

static void a_call_that_somebody_waits_for_asks_at_once(void **state)
{
    (void)state;
    call = (struct quiet_call){.make = make, .caller = {.client = 1, .owner = 1}};
    quiet_calls_defer(&calls, &call, true);
    assert_true(look(clock_now()).asks);
    assert_true(quiet_calls_waits(&calls, 1));
}

static void a_patient_call_never_asks(void **state)
{
    (void)state;
    call = (struct quiet_call){.make = make, .patient = true};
    quiet_calls_defer(&calls, &call, false);
    struct quiet_calls_view view = look(clock_now() + 3600 * SECOND);
    assert_true(view.any);
    assert_false(view.asks);
    assert_true(quiet_calls_make_next(&calls, clock_now(), NULL));
    assert_int_equal(made, 1);
}

/* ---- the order within a window ---- */

enum { QUEUED_MAX = 16 };
static struct quiet_call queued[QUEUED_MAX];
static size_t queued_count;
static uint32_t order[QUEUED_MAX]; /* clients, as their calls were made */
static size_t order_count;

static void note_order(struct quiet_call *made_now)
{
    order[order_count++] = made_now->caller.client;
}

static void queue_call(uint32_t client, uint32_t owner, uint32_t level, bool asks)
{
    struct quiet_call *next = &queued[queued_count++];
    *next = (struct quiet_call){.make = note_order,
                                .caller = {.client = client, .owner = owner, .level = level}};
    quiet_calls_defer(&calls, next, asks);
}

static int setup_order(void **state)
{
    queued_count = order_count = 0;
    return setup(state);
}

static void assert_order(const uint32_t *expected, size_t count, uint64_t later)
{
    while (quiet_calls_make_next(&calls, clock_now() + later, NULL))
        ;
    assert_int_equal(order_count, count);
    assert_memory_equal(order, expected, count * sizeof *expected);
}

/* Users whose numbers end in the same bits are different users: a container's are often 1000 plus a
 * multiple of 65,536. */
static void a_user_with_many_calls_has_one_turn(void **state)
{
    (void)state;
    const uint32_t greedy = 1001, other = 1001 + 65536, third = 1001 + 2 * 65536;
    for (uint32_t i = 1; i <= 4; i++)
        queue_call(i, greedy, 0, true);
    queue_call(10, other, 0, true);
    queue_call(20, third, 0, true);
    queue_call(21, third, 0, true);
    static const uint32_t expected[] = {1, 10, 20, 2, 21, 3, 4};
    assert_order(expected, 7, 0);
}

static void urgent_calls_come_first_and_riders_last(void **state)
{
    (void)state;
    queue_call(1, 1, 0, false);
    queue_call(2, 2, 7, true);
    queue_call(3, 3, 1, true);
    queue_call(4, 4, 0, true);
    static const uint32_t expected[] = {4, 3, 2, 1};
    assert_order(expected, 4, 0);
}

/* A call that makes something beforehand has no owner, so none was served longer ago. */
static void what_nobody_misses_comes_after_the_end_of_clients(void **state)
{
    (void)state;
    queue_call(1, 0, 0, false);
    queued[0].patient = true;
    for (uint32_t i = 2; i <= 4; i++)
        queue_call(i, 1001, 0, false);
    static const uint32_t expected[] = {2, 3, 4, 1};
    assert_order(expected, 4, 0);
}

static void after_a_second_no_call_waits_for_anothers_priority(void **state)
{
    (void)state;
    queue_call(1, 1, 9, true);
    queue_call(2, 2, 0, true);
    static const uint32_t expected[] = {1, 2};
    assert_order(expected, 2, SECOND + SECOND / 2);
}

/* ---- many calls ---- */

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The control thread and the quiet thread contend for the queue's lock, which everybody needs who
 * gives something up. A walk of the queue for each call would be 10^10 steps here. */
static void a_hundred_thousand_calls_of_one_client_take_no_time(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    struct quiet_call *many = calloc(MANY, sizeof *many);
    assert_non_null(many);
    double begin = processor_seconds();
    for (int i = 0; i < MANY; i++) {
        many[i] = (struct quiet_call){.make = make, .caller = {.client = 1, .owner = 1}};
        quiet_calls_defer(&calls, &many[i], false);
    }
    while (quiet_calls_make_next(&calls, clock_now(), NULL))
        ;
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(quiet_calls_collect(&calls), &many[i]);
    assert_null(quiet_calls_collect(&calls));
    assert_int_equal(made, MANY);
    assert_true(processor_seconds() - begin < 5);
    free(many);
}

static void a_client_that_leaves_takes_its_droppable_calls_along(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct quiet_call *next = &queued[queued_count++];
        *next = (struct quiet_call){.make = note_order,
                                    .caller = {.client = i < 4 ? 1 : 2, .owner = i < 4 ? 1 : 2},
                                    .droppable = i != 1 && i != 5};
        quiet_calls_defer(&calls, next, true);
    }
    quiet_calls_forget(&calls, 1);
    const struct quiet_call *dropped[] = {&queued[0], &queued[2], &queued[3]};
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(quiet_calls_collect(&calls), dropped[i]);
    assert_null(quiet_calls_collect(&calls));
    static const uint32_t expected[] = {1, 2, 2};
    assert_order(expected, 3, 0);
    assert_ptr_equal(quiet_calls_collect(&calls), &queued[1]);
}

int main(void)
{
#define T(name)     cmocka_unit_test_setup_teardown(name, setup, teardown)
#define ORDER(name) cmocka_unit_test_setup_teardown(name, setup_order, teardown)
    const struct CMUnitTest tests[] = {
        T(a_call_that_rides_along_asks_after_a_second),
        T(a_call_that_somebody_waits_for_asks_at_once),
        T(a_patient_call_never_asks),
        ORDER(a_user_with_many_calls_has_one_turn),
        ORDER(urgent_calls_come_first_and_riders_last),
        ORDER(what_nobody_misses_comes_after_the_end_of_clients),
        T(a_hundred_thousand_calls_of_one_client_take_no_time),
        ORDER(a_client_that_leaves_takes_its_droppable_calls_along),
        ORDER(after_a_second_no_call_waits_for_anothers_priority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
