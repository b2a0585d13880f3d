/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a limit must be seen to pass */
/* light: it waits for limits */
/* The client named for work that takes longer than it may. The device ends nothing until it is
 * released. */
#include "tests/unit/worker/harness.h"

#define LIMIT_NS 200000000u

enum { NOT_TOLD_MS = 1500 };

static struct peer *peer;
static uint32_t other;

static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    peer = peer_attach(1);
    other = peer_stream(peer, 0);
    fake_hold();
    return 0;
}

static int teardown(void **state)
{
    fake_release();
    peer_detach(peer);
    return harness_stop(state);
}

static void limit_kernels(uint32_t client)
{
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    limits.allowance.kernel_time = LIMIT_NS;
    harness_ask(PROTO_WORKER_LIMITS, client, &limits, PROTO_WORKER_ATTACHED);
}

/* Each of two streams waits for the other behind work in flight. */
static void push_crosswise(void)
{
    uint64_t first = peer_push_nop(peer, 0), second = peer_push_nop(peer, other);
    peer_wait_head(peer, 0, first);
    peer_wait_head(peer, other, second);
    first = peer_push_wait(peer, 0, other, second);
    second = peer_push_wait(peer, other, 0, first - 1);
    peer_wait_head(peer, 0, first);
    peer_wait_head(peer, other, second);
}

static void a_wait_behind_work_does_not_excuse_it(void **state)
{
    (void)state;
    limit_kernels(1);
    push_crosswise();
    assert_int_equal(harness_receive(), PROTO_WORKER_OVERRAN);
    assert_int_equal(harness.message.header.client, 1);
}

/* The client ahead has no limit, so nobody is to be told of. */
static void who_stands_behind_work_that_a_wait_follows_is_not_blamed(void **state)
{
    (void)state;
    struct peer *behind = peer_attach(2);
    limit_kernels(2);
    push_crosswise();
    uint64_t value = peer_push_nop(behind, 0);
    assert_false(harness_has_message(NOT_TOLD_MS));
    fake_release();
    assert_int_equal(peer_wait(behind, 0, value), 0);
    peer_detach(behind);
}

/* The completer needs this lock for a look. */
static void time_in_which_nobody_looked_is_not_the_kernels(void **state)
{
    (void)state;
    limit_kernels(1);
    uint64_t value = peer_push_nop(peer, 0);
    peer_wait_head(peer, 0, value);
    pthread_mutex_lock(&harness.worker.clients_lock);
    usleep(3 * LIMIT_NS / 1000);
    pthread_mutex_unlock(&harness.worker.clients_lock);
    usleep(20000);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, value), 0);
    assert_false(harness_has_message(100));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_wait_behind_work_does_not_excuse_it),
        T(who_stands_behind_work_that_a_wait_follows_is_not_blamed),
        T(time_in_which_nobody_looked_is_not_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
