/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "server/scheduler/claim.h"
#include "server/scheduler/scheduler.h"

#define MS UINT64_C(1000000)

/* Of a quarter of the time, in plans of 5 s, with this much time to its credit. */
static struct claim claim_of(int64_t ns)
{
    return (struct claim){.credit = {.parts = ns * (int64_t)PLAN_WHOLE, .rate = 2500}};
}

static int64_t owed_ns(const struct claim *claim)
{
    return claim->credit.parts / (int64_t)PLAN_WHOLE;
}

static struct plan plan_of_5_s(void)
{
    struct plan plan;
    plan_set(&plan, 250 * MS, 500, 0);
    return plan;
}

static void a_pause_begins_once(void **state)
{
    (void)state;
    struct claim claim = claim_of(0);
    assert_false(claim_is_busy(&claim));
    claim_set_busy(&claim, true, 5);
    assert_true(claim_is_busy(&claim));
    claim_set_busy(&claim, false, 7);
    claim_set_busy(&claim, false, 9);
    assert_false(claim_is_busy(&claim));
    assert_int_equal(claim.paused_since, 7);
}

static void a_busy_claim_grows_by_its_part(void **state)
{
    (void)state;
    struct plan plan = plan_of_5_s();
    struct claim claim = claim_of(0);
    claim_set_busy(&claim, true, 0);
    claim_settle(&plan, &claim, 400 * MS);
    assert_int_equal(owed_ns(&claim), 100 * MS);
}

/* As if it had the device: a quarter comes and the whole is charged. */
static void what_is_owed_lapses_in_a_pause(void **state)
{
    (void)state;
    struct plan plan = plan_of_5_s();
    struct claim claim = claim_of(400 * MS);
    claim_settle(&plan, &claim, 100 * MS);
    assert_int_equal(owed_ns(&claim), 325 * MS);
    assert_int_equal(claim_forgotten_at(&plan, &claim), 500 * MS);
    claim_settle(&plan, &claim, 500 * MS - 1);
    assert_true(claim.credit.parts > 0);
    claim_settle(&plan, &claim, 500 * MS);
    assert_int_equal(claim.credit.parts, 0);
}

static void debt_is_worked_off_in_a_pause(void **state)
{
    (void)state;
    struct plan plan = plan_of_5_s();
    struct claim claim = claim_of(-100 * (int64_t)MS);
    claim_settle(&plan, &claim, 200 * MS);
    assert_int_equal(owed_ns(&claim), -50 * (int64_t)MS);
    claim_settle(&plan, &claim, 600 * MS);
    assert_int_equal(claim.credit.parts, 0);
}

static void add_client(struct scheduler *scheduler, struct scheduler_client *client,
                       uint32_t request)
{
    struct scheduler_limits limits = {.request = request, .limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    struct error why = {0};
    assert_int_equal(scheduler_add(scheduler, client, &limits, NULL, NULL, 0, &why), 0);
}

/* Leases of 250 ms. A stranger's kernel of a second has both clients wait, one of them from the
 * middle on. The first then pauses for a moment: it is owed 290 ms, the other 150 ms. */
static void a_pausing_client_that_is_owed_more_than_the_next_is_waited_for(void **state)
{
    (void)state;
    struct scheduler scheduler;
    struct scheduler_schedule schedule;
    struct scheduler_client stranger, first, second;
    scheduler_defaults(&schedule);
    schedule.mode = PROTO_MODE_FAIR;
    scheduler_open(&scheduler, &schedule, 0);
    add_client(&scheduler, &stranger, 0);
    add_client(&scheduler, &first, 3000);
    add_client(&scheduler, &second, 3000);
    scheduler_wants(&scheduler, &stranger, 0);
    assert_ptr_equal(scheduler_decide(&scheduler, 0), &stranger);
    scheduler_submitted(&scheduler, &stranger, 1, 0);
    scheduler_wants(&scheduler, &first, 0);
    scheduler_wants(&scheduler, &second, 500 * MS);
    scheduler_idle(&scheduler, &first, 990 * MS);
    scheduler_done(&scheduler, &stranger, 1, 1000 * MS);
    assert_null(scheduler_decide(&scheduler, 1000 * MS));
    scheduler_wants(&scheduler, &first, 1001 * MS);
    assert_ptr_equal(scheduler_decide(&scheduler, 1001 * MS), &first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_begins_once),
        cmocka_unit_test(a_busy_claim_grows_by_its_part),
        cmocka_unit_test(what_is_owed_lapses_in_a_pause),
        cmocka_unit_test(debt_is_worked_off_in_a_pause),
        cmocka_unit_test(a_pausing_client_that_is_owed_more_than_the_next_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
