/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Moments of noise against a count of every tenth of a millisecond. The watching thread sleeps in a
 * time of this test's own, in which others and the bench use the CPUs as a scene says.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <math.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "tests/programs/bench/cpu_use.h"
#include "tests/programs/bench/quiet.h"
#include "tests/support/seed.h"

/* Time goes in steps of 100 us; a sleep of the watcher takes ten. */
enum { SLEEP = 10, SECOND = 10000, SECONDS = 6, STEPS = SECONDS * SECOND, CPUS = 2 };
#define STEP 1e-4

static struct {
    unsigned late[STEPS];             /* the sleep that begins here takes so many steps more */
    double others[STEPS], own[STEPS]; /* CPUs that are used from here to the next step */
    unsigned now;
    bool asleep[STEPS];    /* in a sleep that was 1 ms too long, or longer */
    unsigned ticks[STEPS]; /* when the use of the CPUs was asked for */
    unsigned tick_count;
    double part[STEPS]; /* the others' part of the CPUs in the second around each step */
    double used_by_others, used_by_own; /* seconds, up to now */
    sem_t over, go_on;
    char fault[BENCH_FAULT_MAX];
} scene;

/* ---- in place of the machine ---- */

bool bench_short;
static jmp_buf died;

void bench_die(const char *format, ...)
{
    (void)format;
    longjmp(died, 1);
}

void bench_doubt(struct bench_result *result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->fault, sizeof result->fault, format, arguments);
    va_end(arguments);
}

double bench_now(void)
{
    return scene.now * STEP;
}

unsigned cpu_use_cpus(void)
{
    return CPUS;
}

double cpu_use_all(void)
{
    if (scene.now < STEPS)
        scene.ticks[scene.tick_count++] = scene.now;
    return scene.used_by_others + scene.used_by_own;
}

double cpu_use_below(pid_t pid)
{
    (void)pid;
    return scene.used_by_own;
}

/* The watcher's sleep. Behind the scene nothing happens, and the watcher is held until it is to
 * end. */
int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    assert_int_equal(wanted->tv_nsec, 1000000);
    unsigned late = scene.now < STEPS ? scene.late[scene.now] : 0;
    for (unsigned i = 0; late >= SLEEP && i < SLEEP + late && scene.now + i < STEPS; i++)
        scene.asleep[scene.now + i] = true;
    if (scene.now < STEPS && scene.now + SLEEP + late >= STEPS) {
        sem_post(&scene.over);
        sem_wait(&scene.go_on);
    }
    for (unsigned i = scene.now; i < scene.now + SLEEP + late && i < STEPS; i++) {
        scene.used_by_others += scene.others[i] * STEP;
        scene.used_by_own += scene.own[i] * STEP;
    }
    scene.now += SLEEP + late;
    return 0;
}

static void watch(void)
{
    sem_init(&scene.over, 0, 0);
    sem_init(&scene.go_on, 0, 0);
    quiet_start();
    while (sem_wait(&scene.over))
        ;
    sem_post(&scene.go_on);
    quiet_stop();
}

static void begin(void)
{
    memset(&scene, 0, sizeof scene);
    bench_short = false;
}

/* ---- what it must say, by the count ---- */

static void note_parts(void)
{
    for (unsigned i = 0; i + 1 < scene.tick_count; i++) {
        double sum = 0;
        for (unsigned k = scene.ticks[i]; k < scene.ticks[i + 1]; k++)
            sum += scene.others[k];
        double part = sum / (scene.ticks[i + 1] - scene.ticks[i]) / CPUS;
        for (unsigned k = scene.ticks[i]; k < scene.ticks[i + 1]; k++)
            scene.part[k] = part < 0.05 ? 0 : part;
    }
}

static double count(unsigned from, unsigned to, bool moments_alone)
{
    double seconds = 0;
    for (unsigned i = from; i < to && i < scene.ticks[scene.tick_count - 1]; i++)
        if (scene.asleep[i] || !moments_alone)
            seconds += scene.part[i] * STEP;
    return seconds;
}

static void use(double *of, unsigned from, unsigned to, double cpus)
{
    for (unsigned i = from; i < to; i++)
        of[i] = cpus;
}

/* ---- cases ---- */

static void noise_is_that_of_a_count(void **state)
{
    unsigned *seed = *state;
    for (int turn = 0; turn < 20; turn++) {
        begin();
        for (unsigned at = 0; at < STEPS; at++) {
            /* Exactly 1 ms too long is on the brink, where a rounded time decides. */
            scene.late[at] = rand_r(seed) % 100 ? 0 : (unsigned)rand_r(seed) % 40;
            scene.late[at] += scene.late[at] == SLEEP;
            if (at % SECOND == 0) {
                use(scene.others, at, at + SECOND,
                    rand_r(seed) % 3 ? 0 : 0.2 * (rand_r(seed) % 10));
                use(scene.own, at, at + SECOND, 0.1 * (rand_r(seed) % 10));
            }
        }
        watch();
        note_parts();
        assert_true(scene.tick_count >= SECONDS - 1);
        for (int window = 0; window < 20; window++) {
            unsigned last = scene.ticks[scene.tick_count - 1];
            unsigned from = (unsigned)rand_r(seed) % last;
            unsigned to = from + 1 + (unsigned)rand_r(seed) % (last - from);
            double noise = quiet_noise(from * STEP, to * STEP);
            assert_true(fabs(noise - count(from, to, true)) < 1e-7);
            assert_int_equal(quiet_between(from * STEP, to * STEP), count(from, to, true) == 0);
            double others = count(from, to, false) / ((to - from) * STEP);
            assert_true(fabs(quiet_others(from * STEP, to * STEP) - others) < 1e-7);
        }
    }
}

enum { LATE_AT = 15000 }; /* in the middle of the second second */

static void a_late_sleep_is_noise_only_while_others_use_the_cpus(void **state)
{
    (void)state;
    begin();
    scene.late[LATE_AT] = 30;
    use(scene.own, 0, STEPS, CPUS);
    watch();
    assert_true(scene.asleep[LATE_AT]);
    assert_true(quiet_between(0, SECONDS));
    begin();
    scene.late[LATE_AT] = 30;
    use(scene.others, SECOND, 2 * SECOND, 1);
    watch();
    /* Half of the CPUs for 4 ms; a window that ends before, or begins behind, is quiet. */
    assert_true(fabs(quiet_noise(0, SECONDS) - 0.002) < 1e-5);
    assert_true(quiet_between(0, LATE_AT * STEP));
    assert_false(quiet_between(0, (LATE_AT + 1) * STEP));
    assert_true(quiet_between((LATE_AT + SLEEP + 30) * STEP, SECONDS));
    bench_short = true;
    assert_true(quiet_between(0, SECONDS));
}

static void sleeps_in_time_and_little_use_are_no_noise(void **state)
{
    (void)state;
    begin();
    scene.late[LATE_AT] = SLEEP - 1;
    use(scene.others, 0, STEPS, CPUS);
    watch();
    assert_true(quiet_between(0, SECONDS));
    begin();
    scene.late[LATE_AT] = 30;
    use(scene.others, 0, STEPS, 0.04 * CPUS); /* may be an error of the kernel's ticks */
    watch();
    assert_true(quiet_between(0, SECONDS));
}

static void more_than_a_tenth_of_the_cpus_is_doubtful(void **state)
{
    (void)state;
    for (int per_mille = 90; per_mille <= 110; per_mille += 20) {
        struct bench_result result = {0};
        begin();
        use(scene.others, 0, STEPS, per_mille / 1e3 * CPUS);
        watch();
        quiet_judge(&result, 1, 4);
        assert_int_equal(result.fault[0] != 0, per_mille > 100);
        bench_short = true;
        result.fault[0] = 0;
        quiet_judge(&result, 1, 4);
        assert_string_equal(result.fault, "");
    }
}

static void more_than_a_tenth_of_dropped_rounds_is_doubtful(void **state)
{
    (void)state;
    struct bench_result result = {0};
    quiet_judge_dropped(&result, 0, 1);
    quiet_judge_dropped(&result, 10, 100);
    assert_string_equal(result.fault, "");
    quiet_judge_dropped(&result, 11, 100);
    assert_string_equal(result.fault, "the machine is too busy: 11 of 100 rounds were disturbed");
    if (!setjmp(died)) {
        quiet_judge_dropped(&result, 7, 7);
        fail();
    }
}

int main(void)
{
    unsigned seed = seed_draw();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(noise_is_that_of_a_count, &seed),
        cmocka_unit_test(a_late_sleep_is_noise_only_while_others_use_the_cpus),
        cmocka_unit_test(sleeps_in_time_and_little_use_are_no_noise),
        cmocka_unit_test(more_than_a_tenth_of_the_cpus_is_doubtful),
        cmocka_unit_test(more_than_a_tenth_of_dropped_rounds_is_doubtful),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
