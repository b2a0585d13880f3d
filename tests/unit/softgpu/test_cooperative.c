/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Cooperative launches: the blocks of a grid meet at a word that the driver gave them. And managed
 * memory, which the host reaches without a copy.
 */
#include "common/cuda/launch_attribute.h"
#include "tests/unit/softgpu/kernels.h"

/* meet(out): out[block] = how many blocks have arrived when it goes on; out[block] = ~0 without a
 * place to meet. hold() takes 20 ms. */
static const char meet_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".visible .entry meet(.param .u64 out)\n{\n"
                               "    .reg .pred %p<3>;\n    .reg .b32 %r<8>;\n    .reg .b64 %d<8>;\n"
                               "    ld.param.u64 %d1, [out];\n"
                               "    cvta.to.global.u64 %d1, %d1;\n"
                               "    mov.u32 %r1, %ctaid.x;\n"
                               "    mul.wide.u32 %d2, %r1, 4;\n"
                               "    add.u64 %d1, %d1, %d2;\n"
                               "    mov.u32 %r2, %envreg1;\n"
                               "    mov.u32 %r3, %envreg2;\n"
                               "    mov.b64 %d3, {%r3, %r2};\n"
                               "    mov.u32 %r5, 4294967295;\n"
                               "    setp.eq.u64 %p1, %d3, 0;\n"
                               "    @%p1 bra DONE;\n"
                               "    atom.add.u32 %r4, [%d3+4], 1;\n"
                               "    mov.u32 %r6, %nctaid.x;\n"
                               "    mov.u32 %r7, 200000;\n"
                               "WAIT:\n"
                               "    ld.volatile.u32 %r5, [%d3+4];\n"
                               "    setp.ge.u32 %p2, %r5, %r6;\n"
                               "    @%p2 bra DONE;\n"
                               "    nanosleep.u32 %r7;\n"
                               "    bra WAIT;\n"
                               "DONE:\n"
                               "    st.global.u32 [%d1], %r5;\n"
                               "    ret;\n}\n"
                               ".visible .entry hold()\n{\n"
                               "    .reg .pred %p<2>;\n    .reg .b32 %r<3>;\n"
                               "    mov.u32 %r1, 20;\n"
                               "    mov.u32 %r2, 1000000;\n"
                               "AGAIN:\n"
                               "    nanosleep.u32 %r2;\n"
                               "    sub.u32 %r1, %r1, 1;\n"
                               "    setp.ne.u32 %p1, %r1, 0;\n"
                               "    @%p1 bra AGAIN;\n"
                               "    ret;\n}\n";

enum { BLOCKS = 20 };
static cuda_function meet, hold;
static cuda_device_ptr out;

static int setup(void **state)
{
    cuda_module module;
    int failed;

    (void)state;
    setenv("SOFTGPU_SMS", "8", 1);
    setenv("SOFTGPU_GRID_ORDER", "0", 1); /* grids come in any order */
    failed = kernels_open();
    if (failed || cuModuleLoadData(&module, meet_ptx) != CUDA_OK)
        return -1;
    return cuModuleGetFunction(&meet, module, "meet") == CUDA_OK &&
                   cuModuleGetFunction(&hold, module, "hold") == CUDA_OK &&
                   cuMemAllocManaged(&out, sizeof(uint32_t[BLOCKS]), 1) == CUDA_OK
               ? 0
               : -1;
}

static cuda_result launch_meet(unsigned blocks, unsigned shared_bytes, cuda_stream stream)
{
    void *params[] = {&out};

    return cuLaunchCooperativeKernel(meet, blocks, 1, 1, 1, 1, 1, shared_bytes, stream, params);
}

static void expect_all(uint32_t value)
{
    const uint32_t *values = (const uint32_t *)(uintptr_t)out;

    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_int_equal(values[i], value);
}

static void all_blocks_meet_in_each_launch(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        memset((void *)(uintptr_t)out, 0, sizeof(uint32_t[BLOCKS]));
        OK(launch_meet(BLOCKS, 0, NULL));
        expect_all(BLOCKS);
    }
}

static void grids_at_once_meet_apart(void **state)
{
    cuda_stream streams[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        OK(cuStreamCreate(&streams[i], CUDA_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 20; i++)
        OK(launch_meet(BLOCKS, 0, streams[i % 2]));
    expect_all(BLOCKS);
    for (unsigned i = 0; i < 2; i++)
        OK(cuStreamDestroy_v2(streams[i]));
}

/* Half of each waits for the kernels of hold to end. A later one that took their room before the
 * first is whole would stop both. */
static void grids_that_fill_the_device_end(void **state)
{
    enum { STREAMS = 3, ROUNDS = 8 };
    cuda_stream streams[STREAMS];
    cuda_device_ptr word;
    int sms, blocks;
    void *params[] = {&word};

    (void)state;
    OK(cuDeviceGetAttribute(&sms, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, meet, 1, 40000));
    OK(cuMemAlloc_v2(&word, sizeof(uint32_t) * (size_t)(sms * blocks)));
    for (unsigned i = 0; i < STREAMS; i++)
        OK(cuStreamCreate(&streams[i], CUDA_STREAM_NON_BLOCKING));
    for (unsigned round = 0; round < ROUNDS; round++) {
        OK(cuLaunchKernel(hold, (unsigned)(sms * blocks) / 2, 1, 1, 1, 1, 1, 40000, streams[0],
                          NULL, NULL));
        for (unsigned i = 1; i < STREAMS; i++)
            OK(cuLaunchCooperativeKernel(meet, (unsigned)(sms * blocks), 1, 1, 1, 1, 1, 40000,
                                         streams[i], params));
        OK(cuCtxSynchronize());
    }
    for (unsigned i = 0; i < STREAMS; i++)
        OK(cuStreamDestroy_v2(streams[i]));
    OK(cuMemFree_v2(word));
}

static void an_attribute_makes_a_launch_cooperative(void **state)
{
    struct cuda_launch_attribute attribute = {.id = CUDA_LAUNCH_COOPERATIVE, .number = 1};
    struct cuda_launch_config config = {
        .grid = {BLOCKS, 1, 1}, .block = {1, 1, 1}, .attributes = &attribute, .attribute_count = 1};
    void *params[] = {&out};

    (void)state;
    OK(cuLaunchKernelEx(&config, meet, params, NULL));
    expect_all(BLOCKS);
    attribute.number = 0;
    OK(cuLaunchKernelEx(&config, meet, params, NULL));
    expect_all(UINT32_MAX);
    attribute =
        (struct cuda_launch_attribute){.id = CUDA_LAUNCH_CLUSTER_DIMENSION, .cluster = {2, 1, 1}};
    assert_int_equal(cuLaunchKernelEx(&config, meet, params, NULL), CUDA_ERR_NOT_SUPPORTED);
    assert_int_equal(cuLaunchKernelEx(NULL, meet, params, NULL), CUDA_ERR_INVALID_VALUE);
}

static void an_ordinary_grid_has_no_place_to_meet(void **state)
{
    void *params[] = {&out};

    (void)state;
    OK(cuLaunchKernel(meet, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    expect_all(UINT32_MAX);
}

static void a_grid_that_does_not_fit_at_once_is_refused(void **state)
{
    int sms, blocks;

    (void)state;
    OK(cuDeviceGetAttribute(&sms, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, meet, 1, 40000));
    assert_int_equal(launch_meet((unsigned)(sms * blocks) + 1, 40000, NULL),
                     CUDA_ERR_COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_int_equal(launch_meet(0, 0, NULL), CUDA_ERR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}

static void managed_memory_takes_one_of_two_flags(void **state)
{
    cuda_device_ptr ptr = 0;

    (void)state;
    assert_int_equal(cuMemAllocManaged(&ptr, 64, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemAllocManaged(&ptr, 64, 3), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemAllocManaged(&ptr, 0, 1), CUDA_ERR_INVALID_VALUE);
    OK(cuMemAllocManaged(&ptr, 64, 2));
    OK(cuMemFree_v2(ptr));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_blocks_meet_in_each_launch),
        cmocka_unit_test(grids_at_once_meet_apart),
        cmocka_unit_test(grids_that_fill_the_device_end),
        cmocka_unit_test(an_attribute_makes_a_launch_cooperative),
        cmocka_unit_test(an_ordinary_grid_has_no_place_to_meet),
        cmocka_unit_test(a_grid_that_does_not_fit_at_once_is_refused),
        cmocka_unit_test(managed_memory_takes_one_of_two_flags),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
