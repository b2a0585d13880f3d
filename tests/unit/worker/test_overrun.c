/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a limit must be seen to pass */
/* light: it waits for limits */
/* The client named for work that takes longer than it may. The device ends nothing until it is
 * released. */
#include "common/clock.h"
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

/* Short commands, until the gate has seen that they are. */
static void make_batches_long(struct client *client)
{
    uint32_t batch = 0;
    for (uint64_t end = clock_now() + 10000000000u; batch < 8;) {
        assert_true(clock_now() < end);
        assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
        pthread_mutex_lock(&client->lock);
        batch = client->gate.batch;
        pthread_mutex_unlock(&client->lock);
    }
}

/* Nothing ends, and the worker can't know which of two commands runs: it allows a limit for each.
 * The submitter finds all commands at once. */
static void the_first_of_many_commands_is_late_by_one_limit_at_most(void **state)
{
    enum { COMMANDS = 8 };
    (void)state;
    struct client *client = harness.worker.clients[0];
    fake_release();
    limit_kernels(1);
    make_batches_long(client);
    fake_hold();
    pthread_mutex_lock(&client->lock);
    for (int i = 0; i < COMMANDS; i++)
        peer_push_nop(peer, 0);
    pthread_mutex_unlock(&client->lock);
    uint64_t since = clock_now();
    assert_int_equal(harness_receive(), PROTO_WORKER_OVERRAN);
    uint64_t took = clock_now() - since;
    print_message("told after %.2f limits\n", (double)took / LIMIT_NS);
    assert_true(took > LIMIT_NS && took < 3 * (uint64_t)LIMIT_NS);
}

/* The next thing of the one CUstream that has any. */
static void end_next(void)
{
    bool ended = false;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; !ended && i < fake.stream_count; i++)
        ended = fake_step(fake.streams[i]);
    pthread_mutex_unlock(&fake.lock);
    assert_true(ended);
}

/* A batch of many commands stands behind another one when their client gets its first limit. */
static void a_batch_from_before_the_limit_may_take_it_for_each_command(void **state)
{
    enum { COMMANDS = 8 };
    (void)state;
    struct client *client = harness.worker.clients[0];
    uint64_t value = 0;
    fake_release();
    make_batches_long(client);
    fake_hold();
    uint64_t first = peer_push_nop(peer, 0);
    peer_wait_head(peer, 0, first);
    pthread_mutex_lock(&client->lock);
    for (int i = 0; i < COMMANDS; i++)
        value = peer_push_nop(peer, 0);
    pthread_mutex_unlock(&client->lock);
    peer_wait_head(peer, 0, value);
    limit_kernels(1);
    while (client_stream_reached(&client->streams[0]) < first)
        end_next();
    uint64_t since = clock_now();
    assert_int_equal(harness_receive(), PROTO_WORKER_OVERRAN);
    uint64_t took = clock_now() - since;
    print_message("told after %.2f limits\n", (double)took / LIMIT_NS);
    assert_true(took > (COMMANDS - 1) * (uint64_t)LIMIT_NS);
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
        T(the_first_of_many_commands_is_late_by_one_limit_at_most),
        T(a_batch_from_before_the_limit_may_take_it_for_each_command),
        T(a_wait_behind_work_does_not_excuse_it),
        T(who_stands_behind_work_that_a_wait_follows_is_not_blamed),
        T(time_in_which_nobody_looked_is_not_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
