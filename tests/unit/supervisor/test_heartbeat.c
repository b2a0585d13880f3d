/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* When a worker counts as silent. The test plays the worker's threads and the clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/supervisor/worker/heartbeat.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct heartbeat heartbeat;
static struct activity_page *page;
static uint64_t now;

static int begin(void **state)
{
    (void)state;
    heartbeat = (struct heartbeat){.page = SHM_NONE};
    now = 5 * SECOND;
    if (heartbeat_open(&heartbeat, 2 * SECOND) < 0)
        return -1;
    page = heartbeat.page.base;
    return 0;
}

static int end(void **state)
{
    (void)state;
    heartbeat_close(&heartbeat);
    return 0;
}

static void beat(enum activity_thread thread)
{
    page->thread[thread].beat = page->asked;
}

/* One look, a second after the last one; then the control thread answers. */
static void look(void)
{
    now += SECOND;
    if (heartbeat_look(&heartbeat, now))
        heartbeat_answered(&heartbeat);
}

static void threads_that_go_on_are_not_silent(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        look();
        assert_int_equal(heartbeat.next_ns, SECOND);
        beat(ACTIVITY_SUBMITTER);
        beat(ACTIVITY_COMPLETER);
        assert_int_equal(heartbeat_silent_ns(&heartbeat), 0);
    }
}

static void threads_that_rest_are_not_silent_and_are_looked_at_seldom(void **state)
{
    (void)state;
    page->thread[ACTIVITY_SUBMITTER].rests = page->thread[ACTIVITY_COMPLETER].rests = 1;
    for (int i = 0; i < 20; i++) {
        look();
        assert_int_equal(heartbeat_silent_ns(&heartbeat), 0);
        assert_int_equal(heartbeat.next_ns, 4 * SECOND);
    }
    page->thread[ACTIVITY_COMPLETER].rests = 0;
    look();
    assert_int_equal(heartbeat.next_ns, SECOND);
}

static void a_thread_that_hangs_is_named_with_its_call(void **state)
{
    (void)state;
    char text[HEARTBEAT_TEXT];
    look();
    page->thread[ACTIVITY_SUBMITTER].call = ACTIVITY_cuMemMap;
    for (int i = 1; i <= 5; i++) {
        beat(ACTIVITY_COMPLETER);
        look();
        assert_int_equal(heartbeat_silent_ns(&heartbeat), i * SECOND);
    }
    assert_string_equal(heartbeat_explain(&heartbeat, 0, text), "thread submitter in cuMemMap");
    page->thread[ACTIVITY_SUBMITTER].call = ACTIVITY_NO_CALL;
    assert_string_equal(heartbeat_explain(&heartbeat, 0, text),
                        "thread submitter, in no call of the driver");
    page->thread[ACTIVITY_SUBMITTER].call = 123456;
    assert_string_equal(heartbeat_explain(&heartbeat, 0, text),
                        "thread submitter, in no call of the driver");
    beat(ACTIVITY_SUBMITTER);
    beat(ACTIVITY_COMPLETER);
    look();
    assert_int_equal(heartbeat_silent_ns(&heartbeat), 0);
}

/* They wait for a lock that it holds, one of them for longer than it is in the call. */
static void of_silent_threads_the_one_in_a_call_is_named(void **state)
{
    (void)state;
    char text[HEARTBEAT_TEXT];
    look();
    beat(ACTIVITY_COMPLETER);
    look();
    page->thread[ACTIVITY_COMPLETER].call = ACTIVITY_cuEventQuery;
    look();
    assert_int_equal(heartbeat_silent_ns(&heartbeat), 2 * SECOND);
    assert_string_equal(heartbeat_explain(&heartbeat, 0, text), "thread completer in cuEventQuery");
    page->thread[ACTIVITY_SUBMITTER].call = ACTIVITY_cuLaunchKernel;
    assert_string_equal(heartbeat_explain(&heartbeat, 0, text),
                        "thread submitter in cuLaunchKernel");
    /* A thread that goes on is in calls, too. */
    page->thread[ACTIVITY_SUBMITTER].call = ACTIVITY_NO_CALL;
    beat(ACTIVITY_COMPLETER);
    look();
    assert_string_equal(heartbeat_explain(&heartbeat, 0, text),
                        "thread submitter, in no call of the driver");
}

/* It is asked behind thousands of other requests, and works them off. */
static void a_control_thread_with_a_long_queue_of_requests_is_not_silent(void **state)
{
    (void)state;
    page->thread[ACTIVITY_SUBMITTER].rests = page->thread[ACTIVITY_COMPLETER].rests = 1;
    assert_true(heartbeat_look(&heartbeat, now));
    for (int i = 0; i < 30; i++) {
        now += SECOND;
        beat(ACTIVITY_CONTROL);
        assert_false(heartbeat_look(&heartbeat, now));
        assert_int_equal(heartbeat_silent_ns(&heartbeat), 0);
    }
    /* Now it hangs. */
    now += SECOND;
    heartbeat_look(&heartbeat, now);
    assert_int_equal(heartbeat_silent_ns(&heartbeat), SECOND);
}

static void a_control_thread_that_does_not_answer_is_silent_and_asked_once(void **state)
{
    (void)state;
    char text[HEARTBEAT_TEXT];
    assert_true(heartbeat_look(&heartbeat, now));
    for (int i = 1; i <= 5; i++) {
        beat(ACTIVITY_SUBMITTER);
        beat(ACTIVITY_COMPLETER);
        assert_false(heartbeat_look(&heartbeat, now += SECOND));
        assert_int_equal(heartbeat_silent_ns(&heartbeat), i * SECOND);
    }
    assert_string_equal(heartbeat_explain(&heartbeat, 0, text),
                        "thread control, in no call of the driver");
    heartbeat_answered(&heartbeat);
    beat(ACTIVITY_SUBMITTER);
    beat(ACTIVITY_COMPLETER);
    assert_true(heartbeat_look(&heartbeat, now += SECOND));
    assert_int_equal(heartbeat_silent_ns(&heartbeat), 0);
}

/* The machine slept, or the supervisor was stopped: what the worker did meanwhile is not known. */
static void time_in_which_nobody_looked_is_not_counted(void **state)
{
    (void)state;
    assert_true(heartbeat_look(&heartbeat, now));
    assert_false(heartbeat_look(&heartbeat, now += 1000 * SECOND));
    assert_true(heartbeat_silent_ns(&heartbeat) <= 2 * SECOND);
}

static void other_threads_may_take_their_time_and_their_calls_are_listed(void **state)
{
    (void)state;
    struct heartbeat_call calls[ACTIVITY_THREADS];
    page->thread[ACTIVITY_QUIET].call = ACTIVITY_cuModuleLoadDataEx;
    page->thread[ACTIVITY_QUIET].called_at = now;
    for (int i = 0; i < 100; i++) {
        look();
        beat(ACTIVITY_SUBMITTER);
        beat(ACTIVITY_COMPLETER);
    }
    assert_int_equal(heartbeat_silent_ns(&heartbeat), 0);
    assert_int_equal(heartbeat_calls(&heartbeat, now, SECOND, calls), 1);
    assert_int_equal(calls[0].thread, ACTIVITY_QUIET);
    assert_string_equal(calls[0].name, "cuModuleLoadDataEx");
    assert_int_equal(calls[0].ns, 100 * SECOND);
    assert_int_equal(heartbeat_calls(&heartbeat, now, 100 * SECOND, calls), 0);
}

static void a_new_interval_keeps_the_silence_so_far(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        look();
    beat(ACTIVITY_COMPLETER);
    uint64_t silent = heartbeat_silent_ns(&heartbeat);
    assert_true(silent > 0);
    heartbeat_retime(&heartbeat, SECOND / 5);
    assert_int_equal(heartbeat.next_ns, SECOND / 10);
    assert_int_equal(heartbeat_silent_ns(&heartbeat), silent);
    now += SECOND / 10;
    heartbeat_look(&heartbeat, now);
    assert_int_equal(heartbeat.next_ns, SECOND / 10);
    assert_int_equal(heartbeat_silent_ns(&heartbeat), silent + SECOND / 10);
}

static void a_process_that_is_stopped_is_called_so(void **state)
{
    (void)state;
    char text[HEARTBEAT_TEXT];
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    heartbeat_explain(&heartbeat, child, text);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_string_equal(text, "the process is stopped, by a signal or a debugger");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_that_go_on_are_not_silent, begin, end),
        cmocka_unit_test_setup_teardown(threads_that_rest_are_not_silent_and_are_looked_at_seldom,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_thread_that_hangs_is_named_with_its_call, begin, end),
        cmocka_unit_test_setup_teardown(of_silent_threads_the_one_in_a_call_is_named, begin, end),
        cmocka_unit_test_setup_teardown(
            a_control_thread_that_does_not_answer_is_silent_and_asked_once, begin, end),
        cmocka_unit_test_setup_teardown(
            a_control_thread_with_a_long_queue_of_requests_is_not_silent, begin, end),
        cmocka_unit_test_setup_teardown(time_in_which_nobody_looked_is_not_counted, begin, end),
        cmocka_unit_test_setup_teardown(
            other_threads_may_take_their_time_and_their_calls_are_listed, begin, end),
        cmocka_unit_test_setup_teardown(a_new_interval_keeps_the_silence_so_far, begin, end),
        cmocka_unit_test_setup_teardown(a_process_that_is_stopped_is_called_so, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
