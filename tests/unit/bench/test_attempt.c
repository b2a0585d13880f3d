/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A row of the bench that dies, hangs or crashes ends nothing but itself, and says why.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/programs/bench/attempt.h"

enum { LONG_SECONDS = 60 };

/* The figures that the rows below tell this process. */
static struct {
    pid_t orphan;
    bool parted;
} * told;

static void measures(struct bench_result *result)
{
    result->value = 7;
    result->yardstick = 2;
    strcpy(result->note, "all is well");
}

static void doubts(struct bench_result *result)
{
    result->value = 28.7;
    bench_doubt(result, "%d clients arrived, not %d", 207, 300);
    bench_doubt(result, "a second reason");
}

static void dies(struct bench_result *result)
{
    result->value = 7;
    bench_die("the scene did not come about: %s", "nobody came");
}

/* As a row does that misses its client. */
static void loses_a_client(struct bench_result *result)
{
    (void)result;
    if (fork() == 0)
        bench_die("the client knows why");
    wait(NULL);
    bench_die("a client ended early");
}

static void aborts(struct bench_result *result)
{
    (void)result;
    abort();
}

static void leaves(struct bench_result *result)
{
    (void)result;
    exit(3);
}

static void hangs(struct bench_result *result)
{
    (void)result;
    for (;;)
        pause();
}

static void part(int signal)
{
    (void)signal;
    told->parted = true;
    _exit(0);
}

/* As a row does whose server is left: its child goes on. */
static void leaves_an_orphan(struct bench_result *result)
{
    int ends[2];
    char byte = 0;
    if (pipe(ends) < 0)
        bench_die("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGTERM, part);
        alarm(LONG_SECONDS); /* in case nobody ends it */
        if (write(ends[1], &byte, 1) != 1)
            _exit(1);
        hangs(result);
    }
    if (read(ends[0], &byte, 1) != 1) /* until the child heeds the signal */
        bench_die("no child");
    told->orphan = pid;
    abort();
}

static struct attempt attempt_of(void (*row)(struct bench_result *), double limit)
{
    struct attempt attempt;
    memset(&attempt, 0xff, sizeof attempt);
    attempt_make(&attempt, row, limit);
    return attempt;
}

static void assert_not_measured(struct attempt attempt, const char *fault)
{
    const struct bench_result nothing = {0};
    assert_false(attempt.measured);
    assert_string_equal(attempt.result.fault, fault);
    memset(attempt.result.fault, 0, sizeof attempt.result.fault);
    assert_memory_equal(&attempt.result, &nothing, sizeof nothing);
}

static void results_come_back(void **state)
{
    (void)state;
    struct attempt attempt = attempt_of(measures, LONG_SECONDS);
    assert_true(attempt.measured);
    assert_true(attempt.result.value == 7 && attempt.result.yardstick == 2);
    assert_string_equal(attempt.result.note, "all is well");
    assert_string_equal(attempt.result.fault, "");
    assert_string_equal(attempt.switches, "");
}

static void a_doubtful_figure_is_kept(void **state)
{
    (void)state;
    struct attempt attempt = attempt_of(doubts, LONG_SECONDS);
    assert_true(attempt.measured);
    assert_true(attempt.result.value == 28.7);
    assert_string_equal(attempt.result.fault, "207 clients arrived, not 300");
}

static void a_row_that_dies_says_why(void **state)
{
    (void)state;
    assert_not_measured(attempt_of(dies, LONG_SECONDS),
                        "the scene did not come about: nobody came");
    assert_not_measured(attempt_of(loses_a_client, LONG_SECONDS), "the client knows why");
    assert_not_measured(attempt_of(leaves, LONG_SECONDS), "its process ended with status 3");
    struct attempt attempt = attempt_of(aborts, LONG_SECONDS);
    assert_false(attempt.measured);
    assert_non_null(strstr(attempt.result.fault, "ended by signal 6 "));
    assert_true(attempt_of(measures, LONG_SECONDS).measured);
}

static void a_row_that_hangs_is_ended(void **state)
{
    (void)state;
    double begun = bench_now();
    assert_not_measured(attempt_of(hangs, 0.2), "it was ended after 0.2 s");
    assert_true(bench_now() - begun >= 0.2);
}

static void nothing_of_a_row_is_left(void **state)
{
    (void)state;
    assert_false(attempt_of(leaves_an_orphan, LONG_SECONDS).measured);
    assert_true(told->orphan > 0);
    assert_true(told->parted);
    assert_int_equal(kill(told->orphan, 0), -1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_back),        cmocka_unit_test(a_doubtful_figure_is_kept),
        cmocka_unit_test(a_row_that_dies_says_why), cmocka_unit_test(a_row_that_hangs_is_ended),
        cmocka_unit_test(nothing_of_a_row_is_left),
    };
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
