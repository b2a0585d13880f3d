/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A client's distance from its promise: by hand where it is plain, and against a count of every
 * tenth of a millisecond for clients that are drawn. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/programs/bench/mix.h"
#include "tests/support/seed.h"

/* A plan is twenty leases, and a seventh of it is whole steps. Windows are of PLANS plans. */
enum { LEASE_MS = 7, STEP_NS = 100000, PLAN = 1400, PLANS = 2, END = 5 * PLAN, SPANS_MAX = END };

/* The life of one client: in steps since its first launch. */
struct life {
    struct mix mix;
    struct load load;
    struct load_page page;
    struct span spans[SPANS_MAX];
    bool ran[END];      /* a kernel of the client */
    unsigned rest[END]; /* the length of the pause that this step is in; 0: it is in none */
};

enum { BEGAN_NS = 1000000000 };

static struct life *life_new(void)
{
    struct life *life = calloc(1, sizeof *life);
    assert_non_null(life);
    life->load.page = &life->page;
    life->load.spans = life->spans;
    life->load.spec.blocks = 1;
    life->page.arrived = BEGAN_NS;
    life->mix.lease_ms = LEASE_MS;
    life->mix.count = 1;
    life->mix.clients[0] = (struct mix_client){.burst = 1, .load = &life->load};
    life->mix.ended = (BEGAN_NS + (double)END * STEP_NS) / 1e9;
    return life;
}

static void run(struct life *life, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to && i < END; i++)
        life->ran[i] = true;
    life->spans[life->page.ran++] =
        (struct span){BEGAN_NS + (uint64_t)from * STEP_NS, BEGAN_NS + (uint64_t)to * STEP_NS, 0, 1};
}

/* The client begins a burst here. */
static void begin_burst(struct life *life, unsigned at)
{
    life->page.time[life->page.times++] = (BEGAN_NS + (double)at * STEP_NS) / 1e9;
}

static void rest(struct life *life, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to && i < END; i++)
        life->rest[i] = to - from;
}

static struct mix_distance distance(const struct life *life, uint32_t share)
{
    return mix_distance(&life->mix, &life->mix.clients[0], share, PLANS);
}

/* ---- by hand ---- */

static bool near(double one, double other)
{
    return fabs(one - other) < 1e-3;
}

static void one_that_has_its_share_is_at_the_promise(void **state)
{
    (void)state;
    struct life *life = life_new();
    for (unsigned at = 0; at < END; at += PLAN / 7)
        run(life, at, at + PLAN / 14); /* half of each piece */
    struct mix_distance far = distance(life, MIX_WHOLE / 2);
    assert_true(near(far.more, 0) && near(far.less, 0));
    assert_int_equal(far.windows, 3 * 7 + 1);
    assert_int_equal(far.compared, far.windows);
    /* Of a share of 30 % it has 20 points too much, of 80 % 30 too little. */
    far = distance(life, 3 * MIX_WHOLE / 10);
    assert_true(near(far.more, 20) && near(far.less, -20));
    far = distance(life, 8 * MIX_WHOLE / 10);
    assert_true(near(far.more, -30) && near(far.less, 30));
    /* The longest kernel of the mix is taken off. */
    life->mix.kernel = (uint64_t)PLAN * PLANS * STEP_NS / 10;
    far = distance(life, 8 * MIX_WHOLE / 10);
    assert_true(near(far.more, -40) && near(far.less, 20));
    free(life);
}

static void the_worst_window_counts(void **state)
{
    (void)state;
    struct life *life = life_new();
    run(life, 0, PLAN);
    run(life, 3 * PLAN, 5 * PLAN);
    struct mix_distance far = distance(life, MIX_WHOLE / 2);
    assert_true(near(far.more, 50)); /* the last two plans */
    assert_true(near(far.less, 50)); /* the second and the third */
    free(life);
}

/* Computes for half of its time, and pauses for the other half: alone it would have as much. */
static void one_that_pauses_is_owed_a_part_of_what_it_had_alone(void **state)
{
    (void)state;
    struct life *life = life_new();
    enum { PIECE = PLAN / 14 };
    for (unsigned at = 0; at < END; at += 2 * PIECE) {
        begin_burst(life, at);
        run(life, at, at + PIECE);
    }
    begin_burst(life, END); /* a pause is known by the burst behind it */
    struct mix_distance far = distance(life, MIX_WHOLE);
    assert_true(near(far.less, 0));
    assert_int_equal(far.compared, far.windows);
    far = distance(life, MIX_WHOLE / 2);
    assert_true(near(far.less, -25) && near(far.more, 0));
    free(life);
}

/* The same client, which is told of each end 80 late: less what a look may take, it has waited. */
static void an_end_that_is_told_late_is_no_pause(void **state)
{
    (void)state;
    struct life *life = life_new();
    enum { PIECE = PLAN / 14, LATE = 80, LOOK = 20 };
    for (unsigned at = 0; at < END; at += 2 * PIECE) {
        begin_burst(life, at);
        life->page.seen[life->page.times - 1] =
            (BEGAN_NS + (double)(at + PIECE + LATE) * STEP_NS) / 1e9;
        run(life, at, at + PIECE);
    }
    begin_burst(life, END);
    struct mix_distance far = distance(life, MIX_WHOLE);
    /* It would have 100 of 140 alone, and had half. */
    assert_true(near(far.less, 100.0 * (100.0 / (200 - LATE + LOOK) - 0.5)));
    free(life);
}

/* It computes for 50, pauses for 100, computes for 10, and waits for its other 40 to the end: alone
 * it would have half of the time. */
static void one_that_nobody_serves_is_owed_what_it_waits_for(void **state)
{
    (void)state;
    struct life *life = life_new();
    life->mix.clients[0].burst = 50;
    life->page.launches = 100;
    begin_burst(life, 0);
    begin_burst(life, 150);
    for (unsigned i = 0; i < 60; i++)
        run(life, i < 50 ? i : 100 + i, i < 50 ? i + 1 : 101 + i);
    /* Of a share of a fifth a tenth is owed, where it had nothing and did not pause. */
    assert_true(near(distance(life, MIX_WHOLE / 5).less, 10));
    /* The first window: of the fifth, 560, it came 160 far, and half of the others are owed. */
    life->mix.ended = (BEGAN_NS + (double)PLANS * PLAN * STEP_NS) / 1e9;
    assert_true(near(distance(life, MIX_WHOLE / 5).less, 100.0 * 200 / (PLANS * PLAN)));
    free(life);
}

static void windows_with_a_long_pause_are_compared_with_the_limit_alone(void **state)
{
    (void)state;
    for (unsigned pause = PLAN / 10 - 1; pause <= PLAN / 10; pause++) {
        struct life *life = life_new();
        begin_burst(life, 0);
        run(life, 0, PLAN);
        begin_burst(life, PLAN + pause);
        run(life, PLAN + pause, END);
        struct mix_distance far = distance(life, MIX_WHOLE / 2);
        assert_int_equal(far.windows, 22);
        /* Eight windows begin before the pause ends, at 0, 1/7 ... 7/7 of a plan. */
        assert_int_equal(far.compared, pause < PLAN / 10 ? 22 : 22 - 8);
        free(life);
    }
}

static void without_a_whole_window_nothing_is_said(void **state)
{
    (void)state;
    struct life *life = life_new();
    run(life, 0, PLAN);
    life->mix.ended = (BEGAN_NS + (double)(PLANS * PLAN - 1) * STEP_NS) / 1e9;
    assert_int_equal(distance(life, MIX_WHOLE).windows, 0);
    free(life);
}

/* ---- by a count ---- */

static void draw_life(struct life *life, unsigned *seed)
{
    struct mix_client *client = &life->mix.clients[0];
    const bool pauses = rand_r(seed) % 3;
    client->burst = 1 + (uint32_t)rand_r(seed) % 4;
    life->mix.kernel = (uint64_t)(rand_r(seed) % 50) * STEP_NS;
    for (unsigned at = 0; at < END;) {
        if (pauses)
            begin_burst(life, at);
        unsigned ends = at;
        for (uint32_t i = 0; i < client->burst; i++) {
            /* Two streams: a kernel may begin while the one before still runs. */
            unsigned begins = at + (unsigned)rand_r(seed) % 60,
                     length = 1 + (unsigned)rand_r(seed) % 80;
            run(life, begins, begins + length);
            ends = begins + length > ends ? begins + length : ends;
            at = begins;
        }
        at = ends + (unsigned)rand_r(seed) % (rand_r(seed) % 20 ? 100 : 400);
        /* Times of bursts are seconds in a double, so nanoseconds may be off by one: no pause is
         * just as long as the bound, or ends just where a window begins. */
        while (at - ends == PLAN / 10 || at % (PLAN / 7) == 0)
            at++;
        if (pauses && at < END)
            rest(life, ends, at);
    }
    life->page.launches = life->page.ran + (rand_r(seed) % 2 ? (uint32_t)rand_r(seed) % 50 : 0);
}

/* Of these steps, how many has it run, and how many paused. */
struct count {
    double ran, rested;
    unsigned longest;
};

static struct count count(const struct life *life, unsigned from, unsigned to)
{
    struct count count = {0};
    for (unsigned i = from; i < to; i++) {
        count.ran += life->ran[i];
        count.rested += life->rest[i] > 0;
        count.longest = life->rest[i] > count.longest ? life->rest[i] : count.longest;
    }
    return count;
}

static struct mix_distance counted(const struct life *life, uint32_t share)
{
    struct mix_distance far = {.more = -100, .less = -100};
    const unsigned window = PLANS * PLAN;
    const struct count all = count(life, 0, END);
    const double work = all.ran / life->page.ran * life->page.launches;
    const double whole = work / (work + all.rested), due = (double)share / MIX_WHOLE * window;
    for (unsigned from = 0; from + window <= END; from += PLAN / 7) {
        const double kernel = (double)life->mix.kernel / STEP_NS;
        const struct count here = count(life, from, from + window);
        /* The share less what it had, and the rest of the way that it should have come. */
        double less = whole * due - here.ran, way = whole * (due - here.ran - here.rested);
        far.windows++;
        far.more = fmax(far.more, 100 * (here.ran - due - kernel) / window);
        if (here.longest < PLAN / 10) {
            far.compared++;
            far.less = fmax(far.less, 100 * (fmin(less, way) - kernel) / window);
        }
    }
    return far;
}

static void distances_are_those_of_a_count(void **state)
{
    unsigned *seed = *state, compared = 0, windows = 0;
    for (int turn = 0; turn < 300; turn++) {
        struct life *life = life_new();
        uint32_t share = 1 + (uint32_t)rand_r(seed) % MIX_WHOLE;
        draw_life(life, seed);
        struct mix_distance far = distance(life, share), oracle = counted(life, share);
        assert_int_equal(far.windows, oracle.windows);
        assert_int_equal(far.compared, oracle.compared);
        assert_true(near(far.more, oracle.more));
        assert_true(near(far.less, oracle.less));
        windows += far.windows;
        compared += far.compared;
        free(life);
    }
    /* Both kinds of windows were there. */
    assert_true(compared > windows / 10 && compared < windows);
}

int main(void)
{
    unsigned seed = seed_draw();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_has_its_share_is_at_the_promise),
        cmocka_unit_test(the_worst_window_counts),
        cmocka_unit_test(one_that_pauses_is_owed_a_part_of_what_it_had_alone),
        cmocka_unit_test(an_end_that_is_told_late_is_no_pause),
        cmocka_unit_test(one_that_nobody_serves_is_owed_what_it_waits_for),
        cmocka_unit_test(windows_with_a_long_pause_are_compared_with_the_limit_alone),
        cmocka_unit_test(without_a_whole_window_nothing_is_said),
        cmocka_unit_test_prestate(distances_are_those_of_a_count, &seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
