/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The supervisor sees in which call of a batch the submitter is. */
#include "tests/unit/worker/harness.h"

#include "server/worker/calls/activity.h"

static struct shm shm;
static _Atomic uint32_t in_launch, in_copy, in_end;
static struct cuda_driver real;

/* The text that the supervisor would read while the call lasts. */
static uint32_t shown(void)
{
    const struct activity_page *page = shm.base;
    return atomic_load(&page->thread[ACTIVITY_SUBMITTER].call);
}

static cuda_result launch(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          cuda_stream stream, void **parameters, void **extra)
{
    in_launch = shown();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_call_of_a_batch_is_shown, setup, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
