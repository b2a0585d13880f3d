/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Kernels that last longer beside neighbours, and lengths that vary. Everything is
 * measured in modelled time. Every case is a process, for settings are read once.
 */
#include "tests/unit/softgpu/kernels.h"

enum { SMS = 16 };

static cuda_stream streams[2], gate;
static cuda_event start, end;

static void open_device(const char *variable, const char *value)
{
    setenv("SOFTGPU_SMS", "16", 1);
    setenv("SOFTGPU_ARRIVAL_NS", "0", 1);
    if (variable)
        setenv(variable, value, 1);
    CHECK(kernels_open() == 0);
    CHECK(cuStreamCreate(&gate, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    for (int i = 0; i < 2; i++)
        CHECK(cuStreamCreate(&streams[i], CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuEventCreate(&start, 0) == CUDA_OK && cuEventCreate(&end, 0) == CUDA_OK);
}

/* Milliseconds of modelled time that a kernel of 10 ms takes, beside one of 40 ms that begins with
 * it and has this many blocks. */
static float last(unsigned blocks, unsigned neighbours)
{
    float milliseconds;

    CHECK(launch_sleep(1, 32, 1000000, 10, gate) == CUDA_OK);
    CHECK(cuEventRecord(start, gate) == CUDA_OK);
    for (int i = 0; i < 2; i++)
        CHECK(cuStreamWaitEvent(streams[i], start, 0) == CUDA_OK);
    if (neighbours > 0)
        CHECK(launch_sleep(neighbours, 32, 1000000, 40, streams[1]) == CUDA_OK);
    CHECK(launch_sleep(blocks, 32, 1000000, 10, streams[0]) == CUDA_OK);
    CHECK(cuEventRecord(end, streams[0]) == CUDA_OK);
    CHECK(cuEventSynchronize(end) == CUDA_OK);
    CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_OK);
    CHECK(cuCtxSynchronize() == CUDA_OK);
    return milliseconds;
}

static void body_contention(void)
{
    float alone, half, full;

    open_device("SOFTGPU_CONTENTION_PERCENT", "100");
    alone = last(SMS, 0);
    half = last(SMS, SMS / 2);
    full = last(SMS, SMS);
    CHECK(alone >= 9.9f && alone < 11.0f);
    CHECK(half >= 14.0f && half < 16.0f);
    CHECK(full >= 19.0f && full < 21.0f);
}

static void body_no_contention(void)
{
    float full;

    open_device(NULL, NULL);
    full = last(SMS, SMS);
    CHECK(full >= 9.9f && full < 11.0f);
}

static void neighbours_make_kernels_last_longer(void **state)
{
    (void)state;
    in_child(body_contention);
    in_child(body_no_contention);
}

static void body_variation(void)
{
    float shortest = 1000, longest = 0;

    open_device("SOFTGPU_VARIATION_PERCENT", "33");
    for (int i = 0; i < 20; i++) {
        float one = last(1, 0);

        shortest = one < shortest ? one : shortest;
        longest = one > longest ? one : longest;
    }
    CHECK(shortest >= 6.6f && shortest < 8.5f);
    CHECK(longest > 11.5f && longest < 14.0f);
}

static void lengths_vary(void **state)
{
    (void)state;
    in_child(body_variation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_make_kernels_last_longer),
        cmocka_unit_test(lengths_vary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
