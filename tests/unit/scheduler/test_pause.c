/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A pause costs a lease's client neither time nor charge, but for what it runs itself. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "server/scheduler/scheduler.h"

#define MS UINT64_C(1000000)
#define T0 (1000 * MS)

static struct scheduler scheduler;
static struct scheduler_client one, two;

/* The first has the lease from T0 on, with one command in flight; the other waits. */
static int setup(void **state)
{
    (void)state;
    struct scheduler_schedule schedule;
    struct error why = {0};
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    scheduler_defaults(&schedule);
    schedule.mode = PROTO_MODE_FAIR;
    scheduler_open(&scheduler, &schedule, T0);
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    assert_int_equal(scheduler_add(&scheduler, &one, &limits, NULL, NULL, T0, &why), 0);
    assert_int_equal(scheduler_add(&scheduler, &two, &limits, NULL, NULL, T0, &why), 0);
    scheduler_wants(&scheduler, &one, T0);
    scheduler_wants(&scheduler, &two, T0);
    assert_ptr_equal(scheduler_decide(&scheduler, T0), &one);
    scheduler_submitted(&scheduler, &one, 1, T0);
    return 0;
}

static void a_lease_is_longer_by_what_a_pause_took_from_it(void **state)
{
    (void)state;
    uint64_t ends = one.lease_group->lease_ends;
    scheduler_pause(&scheduler, T0 + 10 * MS);
    scheduler_done(&scheduler, &one, 1, T0 + 40 * MS);
    scheduler_resume(&scheduler, T0 + 100 * MS);
    /* Time in which it ran itself in the pause is its own. */
    assert_int_equal(one.lease_group->lease_ends, ends + 60 * MS);
    assert_int_equal(scheduler_charged(&scheduler, &one, T0 + 100 * MS), 40 * MS);
}

static void a_client_without_work_in_flight_loses_nothing(void **state)
{
    (void)state;
    uint64_t ends = one.lease_group->lease_ends;
    scheduler_done(&scheduler, &one, 1, T0 + 5 * MS);
    scheduler_pause(&scheduler, T0 + 10 * MS);
    scheduler_resume(&scheduler, T0 + 110 * MS);
    assert_int_equal(one.lease_group->lease_ends, ends + 100 * MS);
    assert_int_equal(scheduler_charged(&scheduler, &one, T0 + 110 * MS), 10 * MS);
}

static void no_lease_ends_or_begins_in_a_pause(void **state)
{
    (void)state;
    uint64_t after = one.lease_group->lease_ends + 1000 * MS;
    scheduler_done(&scheduler, &one, 1, T0 + 5 * MS);
    scheduler_pause(&scheduler, T0 + 5 * MS);
    assert_int_equal(scheduler_next_event(&scheduler, T0 + 5 * MS), SCHEDULER_NEVER);
    assert_null(scheduler_decide(&scheduler, after));
    scheduler_idle(&scheduler, &one, after);
    assert_ptr_equal(one.lease_group->holder, &one);
    scheduler_resume(&scheduler, after);
    assert_null(scheduler_decide(&scheduler, after));
    assert_ptr_equal(scheduler_decide(&scheduler, after + 1000 * MS), &two);
}

static void a_client_may_leave_in_a_pause(void **state)
{
    (void)state;
    scheduler_pause(&scheduler, T0 + MS);
    scheduler_done(&scheduler, &one, 1, T0 + 2 * MS);
    scheduler_remove(&scheduler, &one, T0 + 3 * MS);
    assert_null(scheduler_decide(&scheduler, T0 + 3 * MS));
    scheduler_resume(&scheduler, T0 + 9 * MS);
    assert_ptr_equal(scheduler_decide(&scheduler, T0 + 9 * MS), &two);
}

static void where_a_lease_ends_a_pause_costs_nobody_anything(void **state)
{
    (void)state;
    uint64_t over = T0 + 400 * MS, length = one.lease_group->lease_ends - T0;
    scheduler_stop_between(&scheduler, true);
    assert_null(scheduler_decide(&scheduler, over));
    assert_false(scheduler.between);
    scheduler_done(&scheduler, &one, 1, over);
    assert_true(scheduler.between);
    assert_null(scheduler_decide(&scheduler, over));
    scheduler_resume(&scheduler, over + 30 * MS);
    assert_false(scheduler.between);
    assert_ptr_equal(scheduler_decide(&scheduler, over + 30 * MS), &two);
    assert_int_equal(two.lease_group->lease_ends, over + 30 * MS + length);
    assert_int_equal(scheduler_charged(&scheduler, &one, over + 30 * MS), 400 * MS);
    assert_int_equal(scheduler_charged(&scheduler, &two, over + 30 * MS), 0);
    scheduler_stop_between(&scheduler, false);
    scheduler_idle(&scheduler, &two, over + 31 * MS);
    scheduler_wants(&scheduler, &one, over + 31 * MS);
    assert_ptr_equal(scheduler_decide(&scheduler, over + 40 * MS), &one);
}

/* The end of one group's lease is no occasion while another group works. */
static void a_lease_ends_unnoticed_beside_another_group(void **state)
{
    (void)state;
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    struct scheduler_client third = {0};
    struct sm_group_set here = {{0}}, there = {{0}};
    struct error why;
    sm_group_set_add(&here, 0);
    sm_group_set_add(&there, 1);
    scheduler_place(&scheduler, &one, &here, T0);
    scheduler_place(&scheduler, &two, &here, T0);
    assert_int_equal(scheduler_add(&scheduler, &third, &limits, NULL, &there, T0, &why), 0);
    scheduler_wants(&scheduler, &third, T0);
    while (scheduler_decide(&scheduler, T0))
        ;
    scheduler_submitted(&scheduler, &third, 1, T0);
    scheduler_stop_between(&scheduler, true);
    scheduler_decide(&scheduler, T0 + 400 * MS);
    scheduler_done(&scheduler, &one, 1, T0 + 400 * MS);
    assert_false(scheduler.between);
    scheduler_remove(&scheduler, &third, T0 + 400 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_lease_is_longer_by_what_a_pause_took_from_it, setup),
        cmocka_unit_test_setup(a_client_without_work_in_flight_loses_nothing, setup),
        cmocka_unit_test_setup(no_lease_ends_or_begins_in_a_pause, setup),
        cmocka_unit_test_setup(a_client_may_leave_in_a_pause, setup),
        cmocka_unit_test_setup(where_a_lease_ends_a_pause_costs_nobody_anything, setup),
        cmocka_unit_test_setup(a_lease_ends_unnoticed_beside_another_group, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
