/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Which CUstream a ring gets: its own while there are enough, its client's before another's. */
#include "tests/unit/worker/harness.h"

static struct peer *peer;

static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    peer = peer_attach(1);
    return 0;
}

static int teardown(void **state)
{
    fake_release();
    peer_detach(peer);
    return harness_stop(state);
}

/* Making or destroying one may wait for whatever runs, and the submitter serves everybody. */
static void expect_no_stream_made_by_the_submitter(void)
{
    const pid_t submitter = fake_call(FAKE_WRITE, fake_count(FAKE_WRITE) - 1).thread;
    for (uint32_t i = 0; i < fake_count(FAKE_STREAM_CREATE); i++)
        assert_int_not_equal(fake_call(FAKE_STREAM_CREATE, i).thread, submitter);
    for (uint32_t i = 0; i < fake_count(FAKE_STREAM_DESTROY); i++)
        assert_int_not_equal(fake_call(FAKE_STREAM_DESTROY, i).thread, submitter);
}

static void streams_of_one_client_share_before_others_must(void **state)
{
    (void)state;
    struct peer *peers[6];
    fake_hold();
    /* 6 clients x 8 rings = 48 busy rings on at most 32 CUstreams. */
    for (uint32_t p = 0; p < 6; p++) {
        peers[p] = p ? peer_attach(p + 1) : peer;
        for (uint32_t s = 1; s < STREAMS; s++)
            peer_stream(peers[p], 0);
        for (uint32_t s = 0; s < STREAMS; s++) {
            peer_push_nop(peers[p], s);
            peer_wait_head(peers[p], s, 1);
        }
    }
    assert_int_equal(fake.live_streams, STREAM_POOL_QUEUES);
    fake_release();
    for (uint32_t p = 0; p < 6; p++)
        for (uint32_t s = 0; s < STREAMS; s++)
            assert_int_equal(peer_wait(peers[p], s, 1), 0);
    for (uint32_t p = 1; p < 6; p++)
        peer_detach(peers[p]);
    expect_no_stream_made_by_the_submitter();
}

/* More partitions than there are hardware queues for streams of their own. */
static void streams_of_partitions_make_way(void **state)
{
    (void)state;
    struct peer *peers[12];
    for (uint32_t p = 0; p < 12; p++) {
        peers[p] = peer_attach_with(p + 2, 600 * (p + 1), 0);
        for (uint32_t s = 1; s < STREAMS; s++)
            peer_stream(peers[p], -(int32_t)(s % 4));
    }
    for (int round = 0; round < 3; round++)
        for (uint32_t p = 0; p < 12; p++)
            for (uint32_t s = 0; s < STREAMS; s++)
                peer_push_nop(peers[p], s);
    for (uint32_t p = 0; p < 12; p++)
        for (uint32_t s = 0; s < STREAMS; s++)
            assert_int_equal(peer_wait(peers[p], s, 3), 0);
    for (uint32_t p = 0; p < 12; p++)
        peer_detach(peers[p]);
    assert_int_equal(fake.destroyed_busy, 0);
    expect_no_stream_made_by_the_submitter();
}

static int priority_of_launch(uint32_t n)
{
    return ((const struct cuda_stream_object *)fake_call(FAKE_LAUNCH, n).stream)->priority;
}

/* A CUstream that one ring has left must not serve another ring of a different priority. */
static void priorities_reach_the_device(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(peer_kernel(peer, "kernel"));
    uint32_t urgent = peer_stream(peer, -4);
    assert_int_equal(peer_wait(peer, urgent, peer_push(peer, urgent, &launch)), 0);
    assert_int_equal(priority_of_launch(0), -4);
    struct proto_stream_destroy destroy = {.stream = urgent};
    harness_ask(PROTO_STREAM_DESTROY, 1, &destroy, PROTO_DONE);
    /* A quiesce is answered by the thread that gives the CUstream of a destroyed stream back. */
    harness_ask(PROTO_WORKER_QUIESCE, 1, NULL, PROTO_DONE);
    uint32_t plain = peer_stream(peer, 0), middle = peer_stream(peer, -2);
    assert_int_equal(peer_wait(peer, plain, peer_push(peer, plain, &launch)), 0);
    assert_int_equal(peer_wait(peer, middle, peer_push(peer, middle, &launch)), 0);
    assert_int_equal(priority_of_launch(1), 0);
    assert_int_equal(priority_of_launch(2), -2);
}

static void a_client_shares_with_itself_before_others(void **state)
{
    (void)state;
    struct peer *peers[5];
    for (uint32_t p = 0; p < 5; p++) {
        peers[p] = p ? peer_attach(p + 1) : peer;
        for (uint32_t s = 1; s < STREAMS; s++)
            peer_stream(peers[p], 0);
    }
    struct proto_command_launch launch = peer_launch(peer_kernel(peers[4], "kernel"));
    fake_hold();
    /* 31 CUstreams of four others and the last one of its own: all are busy. */
    for (uint32_t n = 0; n < STREAM_POOL_QUEUES - 1; n++) {
        peer_push_nop(peers[n / STREAMS], n % STREAMS);
        peer_wait_head(peers[n / STREAMS], n % STREAMS, 1);
    }
    for (uint32_t s = 0; s < 3; s++) {
        peer_push(peers[4], s, &launch);
        peer_wait_head(peers[4], s, 1);
    }
    assert_int_equal(fake.live_streams, STREAM_POOL_QUEUES);
    assert_ptr_equal(fake_call(FAKE_LAUNCH, 1).stream, fake_call(FAKE_LAUNCH, 0).stream);
    assert_ptr_equal(fake_call(FAKE_LAUNCH, 2).stream, fake_call(FAKE_LAUNCH, 0).stream);
    const struct proto_worker_usage *usage =
        harness_ask(PROTO_WORKER_USAGE_QUERY, 5, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(usage->shared_queues, 0);
    fake_release();
    for (uint32_t s = 0; s < 3; s++)
        assert_int_equal(peer_wait(peers[4], s, 1), 0);
    for (uint32_t p = 1; p < 5; p++)
        peer_detach(peers[p]);
}

static void shared_queues_are_told(void **state)
{
    (void)state;
    struct peer *peers[5];
    for (uint32_t p = 0; p < 5; p++) {
        peers[p] = p ? peer_attach(p + 1) : peer;
        for (uint32_t s = 1; s < STREAMS; s++)
            peer_stream(peers[p], 0);
    }
    fake_hold();
    for (uint32_t p = 0; p < 4; p++)
        for (uint32_t s = 0; s < STREAMS; s++) {
            peer_push_nop(peers[p], s);
            peer_wait_head(peers[p], s, 1);
        }
    const struct proto_worker_usage *usage =
        harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(usage->shared_queues, 0);
    assert_int_equal(usage->in_flight, STREAMS);
    peer_push_nop(peers[4], 0);
    peer_wait_head(peers[4], 0, 1);
    usage = harness_ask(PROTO_WORKER_USAGE_QUERY, 5, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(usage->shared_queues, 1);
    fake_release();
    for (uint32_t p = 0; p < 5; p++)
        assert_int_equal(peer_wait(peers[p], 0, 1), 0);
    usage = harness_ask(PROTO_WORKER_USAGE_QUERY, 5, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(usage->shared_queues, 0);
    for (uint32_t p = 1; p < 5; p++)
        peer_detach(peers[p]);
}

static void partitions_have_streams_of_their_own(void **state)
{
    (void)state;
    struct peer *quarter = peer_attach_with(2, 2500, 0);
    assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
    struct proto_command_launch a = peer_launch(peer_kernel(peer, "kernel"));
    struct proto_command_launch b = peer_launch(peer_kernel(quarter, "kernel"));
    assert_int_equal(peer_wait(peer, 0, peer_push(peer, 0, &a)), 0);
    assert_int_equal(peer_wait(quarter, 0, peer_push(quarter, 0, &b)), 0);
    const struct cuda_stream_object *whole = fake_call(FAKE_LAUNCH, 0).stream;
    const struct cuda_stream_object *part = fake_call(FAKE_LAUNCH, 1).stream;
    assert_true(whole && whole->green && whole->green->multiprocessors == 132);
    assert_true(part && part->green && part->green->multiprocessors == 32);
    peer_detach(quarter);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(streams_of_one_client_share_before_others_must),
        T(streams_of_partitions_make_way),
        T(priorities_reach_the_device),
        T(a_client_shares_with_itself_before_others),
        T(shared_queues_are_told),
        T(partitions_have_streams_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
