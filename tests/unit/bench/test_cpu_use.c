/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* CPU time of a process and those below it, against processes that say what they used. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/cpu_use.h"

/* Each process's own and its children's times are cut to ticks, four numbers in all. */
#define SLACK 0.08
#define BURNT 0.4

void bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    abort();
}

static double own_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Computes for so long, and says that it did. */
static void burn(int done)
{
    while (own_seconds() < BURNT)
        ;
    if (write(done, "", 1) != 1)
        _exit(1);
}

static void await(int done)
{
    char byte;
    assert_int_equal(read(done, &byte, 1), 1);
}

/* A child of this process burns, or one of a child that is there or has ended; then it sleeps. */
enum who { CHILD, GRANDCHILD, ORPHAN };

static pid_t start_burner(enum who who, int done)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child)
        return child;
    pid_t grandchild = who == CHILD ? 0 : fork();
    if (grandchild && who == ORPHAN)
        _exit(0);
    if (!grandchild)
        burn(done);
    /* The test kills its child, and an orphan ends by itself. */
    alarm(who == CHILD ? 60 : 2);
    for (;;)
        pause();
}

static double grown(enum who who, double *all, double *own)
{
    int done[2];
    assert_int_equal(pipe(done), 0);
    double before = cpu_use_below(getpid()), all_before = cpu_use_all(), own_before = own_seconds();
    pid_t child = start_burner(who, done[1]);
    if (who == ORPHAN)
        assert_int_equal(waitpid(child, NULL, 0), child);
    await(done[0]);
    double below = cpu_use_below(getpid()) - before;
    *all = cpu_use_all() - all_before;
    *own = own_seconds() - own_before;
    if (who != ORPHAN) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    /* CPU time of a child counts when it has ended too, since this process waited for it. */
    if (who == CHILD)
        assert_true(cpu_use_below(getpid()) - before >= below - SLACK);
    close(done[0]);
    close(done[1]);
    return below;
}

static void those_below_count(void **state)
{
    (void)state;
    for (enum who who = CHILD; who <= GRANDCHILD; who++) {
        double all, own, below = grown(who, &all, &own);
        assert_true(below >= BURNT - SLACK && below <= BURNT + own + SLACK);
        assert_true(all >= BURNT - SLACK);
    }
}

static void others_do_not_count(void **state)
{
    (void)state;
    double all, own, below = grown(ORPHAN, &all, &own);
    assert_true(below <= own + SLACK);
    assert_true(all >= BURNT - SLACK);
}

static void nobody_used_nothing(void **state)
{
    (void)state;
    pid_t child = fork();
    if (!child)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(cpu_use_below(child) == 0);
    assert_true(cpu_use_cpus() >= 1);
}

/* The count is finer than a tick, and is of one process alone. */
static void one_process_counts(void **state)
{
    (void)state;
    int done[2];
    assert_int_equal(pipe(done), 0);
    pid_t child = start_burner(GRANDCHILD, done[1]);
    const double parent = cpu_use_of(child), own = cpu_use_of(getpid());
    await(done[0]);
    assert_true(cpu_use_of(child) - parent < BURNT / 2);
    const double from = own_seconds(), counted = cpu_use_of(getpid());
    while (own_seconds() - from < BURNT)
        ;
    const double used = cpu_use_of(getpid()) - counted;
    assert_true(counted >= own);
    assert_true(used >= BURNT - SLACK && used <= own_seconds() - from + SLACK);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(done[0]);
    close(done[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_below_count),
        cmocka_unit_test(others_do_not_count),
        cmocka_unit_test(nobody_used_nothing),
        cmocka_unit_test(one_process_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
