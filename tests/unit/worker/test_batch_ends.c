/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A driver that refuses stream memory operations on partitions: ends of batches are polled. */
#include "tests/unit/worker/harness.h"

static struct peer *peer;
static uint32_t function;

static int setup(void **state)
{
    (void)state;
    fake_reset();
    fake.no_memops = true;
    harness.driver = fake_driver();
    if (harness_start_with(state, &harness.driver) < 0)
        return -1;
    peer = peer_attach(1);
    peer_load_text(peer, 1, harness_ptx, 0);
    function = peer_function(peer, 1, "kernel");
    return 0;
}

static int teardown(void **state)
{
    fake_release();
    peer_detach(peer);
    int result = harness_stop(state);
    assert_int_equal(fake.live_events, 0);
    return result;
}

static uint64_t push_launch(uint32_t stream)
{
    struct proto_command_launch launch = peer_launch(function);
    return peer_push(peer, stream, &launch);
}

static void the_device_is_asked_at_start(void **state)
{
    (void)state;
    assert_int_equal(harness.worker.ends.refused, CUDA_ERR_NOT_SUPPORTED);
    assert_true(batch_ends_polled(&harness.worker.ends));
}

static void a_sleeper_sees_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        assert_int_equal(peer_wait(peer, 0, push_launch(0)), 0);
    assert_int_equal(fake_count(FAKE_WRITE), 0);
}

/* A client that spins on its word announces nothing. */
static void the_word_moves_for_somebody_who_only_looks(void **state)
{
    (void)state;
    uint64_t value = push_launch(0);
    for (int i = 0; peer_completed(peer, 0) != value && i < 10000; i++)
        usleep(1000);
    assert_int_equal(peer_completed(peer, 0), value);
}

static void no_end_is_told_before_it_has_come(void **state)
{
    (void)state;
    uint32_t other = peer_stream(peer, 0);
    fake_hold();
    uint64_t first = push_launch(0), second = push_launch(other);
    peer_wait_head(peer, 0, first);
    peer_wait_head(peer, other, second);
    usleep(20000);
    assert_int_equal(peer_completed(peer, 0), 0);
    assert_int_equal(peer_completed(peer, other), 0);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, first), 0);
    assert_int_equal(peer_wait(peer, other, second), 0);
}

/* More batches than events were made at start; they come back to be used again. */
static void many_batches_end_in_order(void **state)
{
    (void)state;
    uint64_t value = 0, seen = 0;
    for (int i = 0; i < 3000; i++) {
        value = push_launch(0);
        uint64_t now = peer_completed(peer, 0);
        assert_true(now >= seen && now <= value);
        seen = now;
        if (i % 100 == 0)
            assert_int_equal(peer_wait(peer, 0, value), 0);
    }
    assert_int_equal(peer_wait(peer, 0, value), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_device_is_asked_at_start, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sleeper_sees_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(the_word_moves_for_somebody_who_only_looks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_end_is_told_before_it_has_come, setup, teardown),
        cmocka_unit_test_setup_teardown(many_batches_end_in_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
