/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Kernels that last longer beside neighbours, and lengths that vary. Everything is
 * measured in modelled time. Every case is a process, for settings are read once.
 */
#include "tests/programs/bench/span.h"
#include "tests/unit/softgpu/kernels.h"

__asm__(".section .rodata\n.balign 16\n.globl bench_ptx\nbench_ptx:\n.incbin "
        "\"tests/programs/bench/kernels/bench.ptx\"\n.byte 0\n.previous\n");
extern const char bench_ptx[];

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

/* Milliseconds that one block of the bench's kernel of 20 ms ran, as it wrote them, beside this
 * many blocks of 80 ms. */
static double span_ms(cuda_function span, struct span *words, unsigned neighbours)
{
    cuda_device_ptr at = (cuda_device_ptr)(uintptr_t)words;
    cuda_device_ptr counted = (cuda_device_ptr)(uintptr_t)&words[1];
    uint64_t ns = 20000000;
    void *params[] = {&at, &counted, &ns};
    *words = (struct span){0};
    if (neighbours > 0)
        CHECK(launch_sleep(neighbours, 32, 1000000, 80, streams[1]) == CUDA_OK);
    CHECK(launch(span, 1, 1, streams[0], params) == CUDA_OK);
    CHECK(cuCtxSynchronize() == CUDA_OK);
    CHECK(words->done == 1);
    return (double)(words->end - words->begin) / 1e6;
}

static cuda_function open_span(const char *variable, const char *value, struct span **words)
{
    cuda_module module;
    cuda_function span;
    open_device(variable, value);
    CHECK(cuModuleLoadData(&module, bench_ptx) == CUDA_OK);
    CHECK(cuModuleGetFunction(&span, module, "span") == CUDA_OK);
    CHECK(cuMemHostAlloc((void **)words, 2 * sizeof **words, 0) == CUDA_OK);
    return span;
}

static void body_span_variation(void)
{
    struct span *words;
    double shortest = 1000, longest = 0;
    cuda_function span = open_span("SOFTGPU_VARIATION_PERCENT", "33", &words);
    for (int i = 0; i < 20; i++) {
        double one = span_ms(span, words, 0);
        shortest = one < shortest ? one : shortest;
        longest = one > longest ? one : longest;
    }
    CHECK(shortest >= 13.3 && shortest < 17);
    CHECK(longest > 23 && longest < 28);
}

static void body_span_contention(void)
{
    struct span *words;
    cuda_function span = open_span("SOFTGPU_CONTENTION_PERCENT", "100", &words);
    double alone = span_ms(span, words, 0), full = span_ms(span, words, SMS - 1);
    CHECK(alone >= 19.9 && alone < 21);
    CHECK(full > 35 && full < 42);
}

/* Rows of shares are measured with this kernel. */
static void long_kernels_of_the_bench_change_too(void **state)
{
    (void)state;
    in_child(body_span_variation);
    in_child(body_span_contention);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_make_kernels_last_longer),
        cmocka_unit_test(lengths_vary),
        cmocka_unit_test(long_kernels_of_the_bench_change_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
