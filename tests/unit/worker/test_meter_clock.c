/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The device's clock over the host's, from batches whose times the test makes up. */
#include "tests/unit/worker/fake.h"

#include "server/worker/sharing/meter_clock.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)
/* The host's clock is ahead by this at its time START, ns. */
#define AHEAD 7e9
#define START (500 * MS)

enum { TURN_MS = 100 };

static struct meter_clock clock_of;

static int setup(void **state)
{
    (void)state;
    meter_clock_open(&clock_of, TURN_MS * MS);
    return 0;
}

/* A batch each ms for so long, each of which begins so late; the device's clock is slower than the
 * host's by so many parts in a million. Returns the time of the next one. */
static uint64_t lay(uint64_t from, uint64_t ms, uint64_t late, double slower)
{
    for (uint64_t i = 0; i < ms; i++, from += MS) {
        double passed = ((double)from + (double)late - START) * (1 - slower / 1e6);
        meter_clock_lay(&clock_of, from, START + passed - AHEAD);
    }
    return from;
}

static void expect_ahead(double least, double most)
{
    double ahead = meter_clock_ahead(&clock_of);
    if (ahead < least || ahead > most)
        print_message("ahead %f ns, not %f to %f\n", ahead, least, most);
    assert_true(ahead >= least && ahead <= most);
}

static void two_turns_make_it_sure(void **state)
{
    (void)state;
    uint64_t now = lay(START, 2 * TURN_MS, 0, 0);
    assert_false(meter_clock_is_sure(&clock_of, now));
    now = lay(now, 1, 0, 0);
    assert_true(meter_clock_is_sure(&clock_of, now));
    /* Without batches that tell, for two turns. */
    assert_true(meter_clock_is_sure(&clock_of, now + (2 * TURN_MS - 2) * MS));
    assert_false(meter_clock_is_sure(&clock_of, now + (2 * TURN_MS + 1) * MS));
    expect_ahead(AHEAD, AHEAD);
}

static void the_soonest_batch_tells(void **state)
{
    (void)state;
    uint64_t now = START;
    for (int i = 0; i < 30; i++) {
        now = lay(now, 9, 300 * US, 0);
        now = lay(now, 1, 0, 0);
    }
    assert_true(meter_clock_is_sure(&clock_of, now));
    expect_ahead(AHEAD, AHEAD);
}

static void a_turn_of_late_batches_is_not_believed(void **state)
{
    (void)state;
    uint64_t now = lay(START, 3 * TURN_MS, 0, 0);
    assert_true(meter_clock_is_sure(&clock_of, now));
    now = lay(now, TURN_MS + 2, 300 * US, 0);
    assert_false(meter_clock_is_sure(&clock_of, now));
    now = lay(now, 3 * TURN_MS, 0, 0);
    assert_true(meter_clock_is_sure(&clock_of, now));
}

static void few_batches_are_not_believed(void **state)
{
    (void)state;
    uint64_t now = lay(START, 3 * TURN_MS, 0, 0);
    for (int i = 0; i < 20; i++, now += 40 * MS)
        meter_clock_lay(&clock_of, now, (double)now - AHEAD);
    assert_false(meter_clock_is_sure(&clock_of, now));
}

static void a_pause_begins_anew(void **state)
{
    (void)state;
    uint64_t now = lay(START, 3 * TURN_MS, 0, 0);
    now = lay(now + 1000 * MS, 1, 0, 0);
    assert_false(meter_clock_is_sure(&clock_of, now));
    now = lay(now, TURN_MS, 0, 0);
    assert_false(meter_clock_is_sure(&clock_of, now));
    now = lay(now, TURN_MS, 0, 0);
    assert_true(meter_clock_is_sure(&clock_of, now));
}

/* 10 parts in a million are some clocks' drift, 500 what NTP slews one by. */
static void a_drift_is_followed_and_a_slewed_clock_is_not_sure(void **state)
{
    (void)state;
    static const double both_ways[] = {10, -10};
    for (int i = 0; i < 2; i++) {
        double by = both_ways[i];
        setup(NULL);
        uint64_t now = lay(START, 10 * TURN_MS, 0, by);
        assert_true(meter_clock_is_sure(&clock_of, now));
        double now_ahead = AHEAD + (double)(now - START) * by / 1e6;
        expect_ahead(now_ahead - 4000, now_ahead + 4000);
        now = lay(now, 3 * TURN_MS, 0, 50 * by);
        assert_false(meter_clock_is_sure(&clock_of, now));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_turns_make_it_sure, setup),
        cmocka_unit_test_setup(the_soonest_batch_tells, setup),
        cmocka_unit_test_setup(a_turn_of_late_batches_is_not_believed, setup),
        cmocka_unit_test_setup(few_batches_are_not_believed, setup),
        cmocka_unit_test_setup(a_pause_begins_anew, setup),
        cmocka_unit_test_setup(a_drift_is_followed_and_a_slewed_clock_is_not_sure, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
