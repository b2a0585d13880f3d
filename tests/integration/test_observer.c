/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A program sees that its connection recovers, and how often it did: by asking, and by a function
 * that the library calls. The oracle is the number of workers that the test has killed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

enum { TOLD = 64 };

static struct server *server;

/* The states that the library has told, in order. */
struct told {
    struct gpushare_connection_state states[TOLD];
    pthread_t thread;
    int count;
};

static void observe(void *context, const struct gpushare_connection_state *state)
{
    struct told *told = context;
    told->thread = pthread_self();
    if (told->count < TOLD)
        told->states[told->count++] = *state;
}

static struct gpushare_connection_state ask(gpushare_connection *gpu)
{
    struct gpushare_connection_state state = {.size = sizeof state};
    OK(gpushare_connection_state(gpu, &state));
    return state;
}

static void kill_worker(void)
{
    pid_t worker;
    for (int left = (int)(patience_seconds(20) * 1000); left > 0; left--) {
        if (server_workers(server, &worker, 1) == 1) {
            kill(worker, SIGKILL);
            return;
        }
        usleep(1000);
    }
    fail_msg("there is no worker");
}

/* Whether the connection was seen to recover before. */
static bool await_recovery(gpushare_connection *gpu, uint32_t recoveries)
{
    bool seen = false;
    struct gpushare_connection_state state = ask(gpu);
    for (int left = (int)(patience_seconds(20) * 5000);
         left > 0 && (state.state || state.recoveries < recoveries); left--) {
        seen |= state.state == GPUSHARE_STATE_RECOVERING;
        usleep(200);
        state = ask(gpu);
    }
    assert_int_equal(state.state, GPUSHARE_STATE_SERVING);
    assert_int_equal(state.recoveries, recoveries);
    return seen;
}

static void a_connection_says_that_it_recovers(void **state)
{
    (void)state;
    gpushare_connection *gpu = arrival_connect(server, 0);
    bool seen = false;
    uint32_t kills = 0;
    assert_int_equal(ask(gpu).state, GPUSHARE_STATE_SERVING);
    assert_int_equal(ask(gpu).recoveries, 0);
    /* A test that was not run in time may have missed it. */
    while (kills < 2 || (!seen && kills < 20)) {
        kill_worker();
        seen |= await_recovery(gpu, ++kills);
    }
    assert_true(seen);
    gpushare_connection *other = arrival_connect(server, 0);
    assert_int_equal(ask(other).recoveries, 0);
    gpushare_close(&other);
    gpushare_close(&gpu);
}

/* Each state differs from the one before, and the count never falls. */
static void told_in_order(const struct told *told)
{
    struct gpushare_connection_state before = {.state = GPUSHARE_STATE_SERVING};
    for (int i = 0; i < told->count; i++) {
        const struct gpushare_connection_state *now = &told->states[i];
        assert_int_equal(now->size, sizeof *now);
        assert_true(now->state != before.state || now->recoveries != before.recoveries);
        assert_true(now->recoveries >= before.recoveries);
        assert_int_not_equal(before.state, GPUSHARE_STATE_LOST);
        before = *now;
    }
}

static void a_thread_that_waits_tells_the_program(void **state)
{
    (void)state;
    struct told told = {.count = 0};
    const struct gpushare_options options = {.observe = observe, .observe_context = &told};
    gpushare_connection *gpu = arrival_connect_with(server, options);
    gpushare_event *event;
    assert_int_equal(told.count, 0);
    for (uint32_t kills = 1; kills <= 3; kills++) {
        kill_worker();
        /* The next worker answers. */
        OK(gpushare_event_create(gpu, GPUSHARE_EVENT_TIMING, &event));
        (void)await_recovery(gpu, kills);
        assert_true(told.count > 0 && told.count <= 2 * (int)kills);
        assert_true(pthread_equal(told.thread, pthread_self()));
        assert_int_equal(told.states[told.count - 1].state, GPUSHARE_STATE_SERVING);
        assert_int_equal(told.states[told.count - 1].recoveries, kills);
    }
    told_in_order(&told);
    gpushare_close(&gpu);
}

static void the_end_is_told_once(void **state)
{
    (void)state;
    struct told told = {.count = 0};
    const struct gpushare_options options = {.observe = observe, .observe_context = &told};
    struct server *own = server_start(NULL, NULL);
    gpushare_connection *gpu = arrival_connect_with(own, options);
    struct gpushare_memory_info info = {.size = sizeof info};
    assert_int_equal(server_stop(own), 0);
    assert_int_not_equal(gpushare_memory_info(gpu, &info), GPUSHARE_SUCCESS);
    assert_int_not_equal(gpushare_connection_error(gpu, NULL), GPUSHARE_SUCCESS);
    assert_int_equal(ask(gpu).state, GPUSHARE_STATE_LOST);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.states[0].state, GPUSHARE_STATE_LOST);
    told_in_order(&told);
    gpushare_close(&gpu);
}

static void false_arguments_are_refused(void **state)
{
    (void)state;
    struct gpushare_connection_state now = {.size = sizeof now};
    gpushare_connection *gpu = arrival_connect(server, 0);
    assert_int_equal(gpushare_connection_state(NULL, &now), GPUSHARE_ERROR_NOT_INITIALIZED);
    assert_int_equal(gpushare_connection_state(gpu, NULL), GPUSHARE_ERROR_INVALID_VALUE);
    now.size = 0;
    assert_int_equal(gpushare_connection_state(gpu, &now), GPUSHARE_ERROR_INVALID_VALUE);
    gpushare_close(&gpu);
}

static int start(void **state)
{
    *state = server = server_start(NULL, NULL);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_says_that_it_recovers),
        cmocka_unit_test(a_thread_that_waits_tells_the_program),
        cmocka_unit_test(the_end_is_told_once),
        cmocka_unit_test(false_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
