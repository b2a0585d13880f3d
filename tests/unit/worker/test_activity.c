/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The supervisor sees in which call of a batch the submitter is, and that threads with much to do
 * go on. */
#include "tests/unit/worker/harness.h"

#include "common/clock.h"
#include "server/worker/calls/activity.h"

enum { BUSY_CLIENTS = 4, LAUNCHES = 900 };

static struct shm shm;
static _Atomic uint32_t in_launch, in_copy, in_end;
static struct cuda_driver real;
/* Launches wait while it is true. */
static atomic_bool pushing;
/* Launches since the submitter was asked whether it goes on, and the most before it showed that. */
static uint32_t launches_asked;
static _Atomic uint32_t launches_most; /* the submitter writes it */

/* The text that the supervisor would read while the call lasts. */
static uint32_t shown(void)
{
    const struct activity_page *page = shm.base;
    return atomic_load(&page->thread[ACTIVITY_SUBMITTER].call);
}

static bool shows_life(enum activity_thread thread)
{
    const struct activity_page *page = shm.base;
    return atomic_load(&page->thread[thread].beat) == atomic_load(&page->asked);
}

static void ask_for_life(void)
{
    struct activity_page *page = shm.base;
    atomic_fetch_add(&page->asked, 1);
}

static void count_launch(void)
{
    while (atomic_load(&pushing))
        sched_yield();
    if (shows_life(ACTIVITY_SUBMITTER)) {
        ask_for_life();
        launches_asked = 0;
    }
    launches_asked++;
    atomic_store(&launches_most, max(atomic_load(&launches_most), launches_asked));
}

static cuda_result launch(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          cuda_stream stream, void **parameters, void **extra)
{
    in_launch = shown();
    count_launch();
    return real.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                               stream, parameters, extra);
}

static cuda_result copy(cuda_device_ptr destination, cuda_device_ptr source, size_t count,
                        cuda_stream stream)
{
    in_copy = shown();
    return real.cuMemcpyAsync(destination, source, count, stream);
}

static cuda_result end(cuda_stream stream, unsigned count, cuda_mem_op_params *ops, unsigned flags)
{
    in_end = shown();
    return real.cuStreamBatchMemOp(stream, count, ops, flags);
}

static int setup(void **state)
{
    static struct cuda_driver driver;
    if (shm_create(&shm, "activity", sizeof(struct activity_page)) < 0 || activity_open(shm.fd) < 0)
        return -1;
    fake_reset();
    real = driver = fake_driver();
    driver.cuLaunchKernel = launch;
    driver.cuMemcpyAsync = copy;
    driver.cuStreamBatchMemOp = end;
    return harness_start_with(state, &driver);
}

static void each_call_of_a_batch_is_shown(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    uint64_t device = peer_map(peer, 0, FAKE_GRANULE);
    uint64_t host = peer_host_map(peer, 0, 4096);
    struct proto_command_launch kernel = peer_launch(peer_kernel(peer, "kernel"));
    struct proto_command_copy moved = {
        .opcode = PROTO_COMMAND_COPY, .destination = device, .source = host, .count = 64};
    peer_push(peer, 0, &kernel);
    uint64_t value = peer_push(peer, 0, &moved);
    assert_int_equal(peer_wait(peer, 0, value), 0);
    assert_string_equal(activity_call_name(in_launch), "cuLaunchKernel");
    assert_string_equal(activity_call_name(in_copy), "cuMemcpyAsync");
    assert_string_equal(activity_call_name(in_end), "cuStreamBatchMemOp");
    peer_detach(peer);
}

/* On a busy machine its rounds over many clients take seconds, and it would seem to hang. */
static void the_submitter_goes_on_with_each_visit(void **state)
{
    (void)state;
    struct peer *peers[BUSY_CLIENTS];
    struct proto_command_launch kernels[BUSY_CLIENTS];
    for (uint32_t i = 0; i < BUSY_CLIENTS; i++) {
        peers[i] = peer_attach(i + 1);
        kernels[i] = peer_launch(peer_kernel(peers[i], "kernel"));
    }
    atomic_store(&pushing, true);
    for (int n = 0; n < LAUNCHES; n++)
        for (uint32_t i = 0; i < BUSY_CLIENTS; i++)
            peer_push(peers[i], 0, &kernels[i]);
    atomic_store(&pushing, false);
    for (uint32_t i = 0; i < BUSY_CLIENTS; i++)
        assert_int_equal(peer_wait(peers[i], 0, LAUNCHES), 0);
    print_message("%u launches at most\n", atomic_load(&launches_most));
    assert_in_range(atomic_load(&launches_most), 1, SUBMITTER_VISIT_MAX);
    for (uint32_t i = 0; i < BUSY_CLIENTS; i++)
        peer_detach(peers[i]);
}

/* It looks at one client, and has to wait for the next one's lock. */
static void the_completer_goes_on_with_each_client(void **state)
{
    (void)state;
    struct peer *peers[2];
    uint64_t end = clock_now() + 10000000000u;
    fake_hold();
    for (uint32_t i = 0; i < 2; i++) {
        peers[i] = peer_attach(i + 1);
        peer_wait_head(peers[i], 0, peer_push_nop(peers[i], 0));
    }
    struct client **clients = harness.worker.clients;
    pthread_mutex_lock(&clients[0]->lock);
    pthread_mutex_lock(&clients[1]->lock);
    /* Until it waits for the first one's. */
    do {
        assert_true(clock_now() < end);
        ask_for_life();
        usleep(20000);
    } while (shows_life(ACTIVITY_COMPLETER));
    pthread_mutex_unlock(&clients[0]->lock);
    while (!shows_life(ACTIVITY_COMPLETER) && clock_now() < end)
        usleep(1000);
    bool shows = shows_life(ACTIVITY_COMPLETER);
    pthread_mutex_unlock(&clients[1]->lock);
    fake_release();
    assert_true(shows);
    for (uint32_t i = 0; i < 2; i++)
        peer_detach(peers[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_call_of_a_batch_is_shown, setup, harness_stop),
        cmocka_unit_test_setup_teardown(the_submitter_goes_on_with_each_visit, setup, harness_stop),
        cmocka_unit_test_setup_teardown(the_completer_goes_on_with_each_client, setup,
                                        harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
