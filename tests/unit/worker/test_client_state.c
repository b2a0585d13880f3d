/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The machine of a client's states: its arrows, and what each state means to the threads. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/worker/client/client.h"

static bool is_reached(enum client_state from, enum client_state to)
{
    bool seen[CLIENT_STATES] = {0};
    seen[from] = true;
    for (int round = 0; round < CLIENT_STATES; round++)
        for (int a = 0; a < CLIENT_STATES; a++)
            for (int b = 0; b < CLIENT_STATES; b++)
                seen[b] |= seen[a] && client_state_follows(a, b);
    return seen[to];
}

static void every_state_is_reached_and_left(void **state)
{
    (void)state;
    for (int at = 0; at < CLIENT_STATES; at++) {
        assert_true(is_reached(CLIENT_ATTACHING, at));
        assert_true(is_reached(at, CLIENT_LEFT));
    }
}

static void a_client_can_be_detached_whatever_it_does(void **state)
{
    (void)state;
    for (int at = CLIENT_ASLEEP; at < CLIENT_LEAVING; at++)
        assert_true(client_state_follows(at, CLIENT_LEAVING));
    for (int to = 0; to < CLIENT_STATES; to++)
        assert_int_equal(client_state_follows(CLIENT_LEAVING, to), to == CLIENT_LEFT);
}

static void a_client_that_broke_the_protocol_is_never_served_again(void **state)
{
    (void)state;
    for (int to = 0; to < CLIENT_STATES; to++) {
        bool never = !client_state_is_served(to);
        assert_true(never || !client_state_follows(CLIENT_VIOLATED, to));
        assert_true(never || !client_state_follows(CLIENT_REPORTED, to));
        assert_true(never || !is_reached(CLIENT_VIOLATED, to));
    }
}

static void a_client_leaves_the_scan_set_only_when_something_will_wake_it(void **state)
{
    (void)state;
    for (int from = 0; from < CLIENT_STATES; from++)
        for (int to = 0; to < CLIENT_STATES; to++)
            if (client_state_is_scanned(from) && !client_state_is_scanned(to) &&
                client_state_is_served(to) && client_state_follows(from, to))
                /* The doorbell; the completer; the gate or the place. */
                assert_true((from == CLIENT_IDLE && to == CLIENT_ASLEEP) ||
                            (from == CLIENT_FULL && to == CLIENT_PARKED) || to == CLIENT_HELD);
    /* One that has more to do never just sleeps. */
    assert_false(client_state_follows(CLIENT_READY, CLIENT_ASLEEP));
    assert_false(client_state_follows(CLIENT_FULL, CLIENT_ASLEEP));
}

static void a_step_that_is_not_drawn_ends_the_process(void **state)
{
    (void)state;
    struct client client = {.number = 7};
    client_state_set(&client, CLIENT_ASLEEP);
    client_state_set(&client, CLIENT_ASLEEP);
    assert_int_equal(client_state(&client), CLIENT_ASLEEP);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        client_state_set(&client, CLIENT_LEFT);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_is_reached_and_left),
        cmocka_unit_test(a_client_can_be_detached_whatever_it_does),
        cmocka_unit_test(a_client_that_broke_the_protocol_is_never_served_again),
        cmocka_unit_test(a_client_leaves_the_scan_set_only_when_something_will_wake_it),
        cmocka_unit_test(a_step_that_is_not_drawn_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
