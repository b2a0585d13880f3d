/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The software GPU by itself: how fast it interprets, on one engine thread.
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
enum { BLOCKS = 32, THREADS = 256, TURNS = 4000, PER_TURN = 8 * 7 + 3, LANE_ROUNDS = 5 };

static double measure(struct cuda_driver *cu)
{
    char path[600];
    struct error why = {0};
    cuda_device device;
    cuda_context context;
    cuda_module module;
    cuda_function function;
    cuda_device_ptr out;
    if (cuda_driver_open(cu, server_build_path("lib/softgpu/libcuda.so.1", path, sizeof path),
                         &why))
        bench_die("%s", why.text);
    DRIVER(cu->cuInit(0));
    DRIVER(cu->cuDeviceGet(&device, 0));
    DRIVER(cu->cuDevicePrimaryCtxRetain(&context, device));
    DRIVER(cu->cuCtxSetCurrent(context));
    DRIVER(cu->cuModuleLoadData(&module, bench_ptx));
    DRIVER(cu->cuModuleGetFunction(&function, module, "arithmetic"));
    DRIVER(cu->cuMemAlloc(&out, BLOCKS * THREADS * sizeof(unsigned)));
    unsigned turns = TURNS;
    void *parameters[] = {&out, &turns};
    double speeds[LANE_ROUNDS];
    const int rounds = bench_short ? 1 : LANE_ROUNDS;
    for (int i = 0; i < rounds; i++) {
        double start = bench_now();
        DRIVER(
            cu->cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
        DRIVER(cu->cuCtxSynchronize());
        speeds[i] = (double)BLOCKS * THREADS * TURNS * PER_TURN / (bench_now() - start);
    }
    return bench_median(speeds, rounds);
}

/* Runs in a child, since the library's threads and settings must not outlive the row. */
void bench_lane_instructions(struct bench_result *result)
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
        double speed = measure(&cu);
        _exit(write(ends[1], &speed, sizeof speed) == sizeof speed ? 0 : 1);
    }
    close(ends[1]);
    int status;
    if (read(ends[0], &result->value, sizeof result->value) != sizeof result->value ||
        waitpid(child, &status, 0) != child || status)
        bench_die("the software GPU could not be measured");
    close(ends[0]);
}
