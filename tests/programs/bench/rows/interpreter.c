/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The software GPU by itself, on one engine thread: how fast it interprets, and what it takes to
 * begin and end a block of 256 threads that do nothing.
 *
 * No neighbours: there is no server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "tests/programs/bench/bench.h"

#define DRIVER(call)                                                                               \
    do {                                                                                           \
        cuda_result driver_result = (call);                                                        \
        if (driver_result != CUDA_OK)                                                              \
            bench_die("%s: %s", #call, cuda_driver_error_name(driver_result));                     \
    } while (0)

/* The loop of the kernel `arithmetic` has 8 x 7 instructions besides its own three. */
enum { BLOCKS = 32, THREADS = 256, TURNS = 4000, PER_TURN = 8 * 7 + 3, ROUNDS = 5 };
enum { EMPTY_BLOCKS = 100000 };

/* Opens the software GPU and finds one of the bench's kernels. */
static cuda_function open_kernel(struct cuda_driver *cu, const char *name)
{
    char path[600];
    struct error why = {0};
    cuda_device device;
    cuda_context context;
    cuda_module module;
    cuda_function function;
    if (cuda_driver_open(cu, server_build_path("lib/softgpu/libcuda.so.1", path, sizeof path),
                         &why))
        bench_die("%s", why.text);
    DRIVER(cu->cuInit(0));
    DRIVER(cu->cuDeviceGet(&device, 0));
    DRIVER(cu->cuDevicePrimaryCtxRetain(&context, device));
    DRIVER(cu->cuCtxSetCurrent(context));
    DRIVER(cu->cuModuleLoadData(&module, bench_ptx));
    DRIVER(cu->cuModuleGetFunction(&function, module, name));
    return function;
}

/* Seconds of one launch to its end: the median of several. */
static double launch_seconds(struct cuda_driver *cu, cuda_function function, unsigned blocks,
                             void **parameters)
{
    double seconds[ROUNDS];
    const int rounds = bench_short ? 1 : ROUNDS;
    for (int i = 0; i < rounds; i++) {
        double start = bench_now();
        DRIVER(
            cu->cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
        DRIVER(cu->cuCtxSynchronize());
        seconds[i] = bench_now() - start;
    }
    return bench_median(seconds, rounds);
}

static double lanes_a_second(struct cuda_driver *cu)
{
    cuda_function function = open_kernel(cu, "arithmetic");
    cuda_device_ptr out;
    unsigned turns = TURNS;
    DRIVER(cu->cuMemAlloc(&out, BLOCKS * THREADS * sizeof(unsigned)));
    void *parameters[] = {&out, &turns};
    return (double)BLOCKS * THREADS * TURNS * PER_TURN /
           launch_seconds(cu, function, BLOCKS, parameters);
}

static double block_ns(struct cuda_driver *cu)
{
    cuda_function function = open_kernel(cu, "nothing");
    uint64_t zero = 0;
    void *parameters[] = {&zero, &zero, &zero, &zero};
    return launch_seconds(cu, function, EMPTY_BLOCKS, parameters) / EMPTY_BLOCKS * 1e9;
}

/* Runs in a child, since the library's threads and settings must not outlive the row. */
static void measure(struct bench_result *result, double (*row)(struct cuda_driver *cu))
{
    char seed[48], threads[] = "SOFTGPU_THREADS=1", strict[] = "SOFTGPU_STRICT=1";
    /* Both stretch modelled time beyond the CPU time that is measured. */
    char contention[] = "SOFTGPU_CONTENTION_PERCENT=0", variation[] = "SOFTGPU_VARIATION_PERCENT=0";
    char *settings[] = {threads, contention, variation, seed, strict, NULL};
    int ends[2];
    snprintf(seed, sizeof seed, "SOFTGPU_SEED=%llu", (unsigned long long)bench_seed);
    bench_note_switches((const char *const *)settings);
    if (pipe(ends) < 0)
        bench_die("no pipe");
    pid_t child = fork();
    if (child == 0) {
        struct cuda_driver cu;
        for (size_t i = 0; settings[i]; i++)
            putenv(settings[i]);
        bench_pin_self(1);
        double speed = row(&cu);
        _exit(write(ends[1], &speed, sizeof speed) == sizeof speed ? 0 : 1);
    }
    close(ends[1]);
    int status;
    if (read(ends[0], &result->value, sizeof result->value) != sizeof result->value ||
        waitpid(child, &status, 0) != child || status)
        bench_die("the software GPU could not be measured");
    close(ends[0]);
}

void bench_lane_instructions(struct bench_result *result)
{
    measure(result, lanes_a_second);
}

void bench_block_start(struct bench_result *result)
{
    measure(result, block_ns);
}
