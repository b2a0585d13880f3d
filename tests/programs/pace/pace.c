/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A CUDA program as nvcc would make it, which measures what CUDA's calls cost it. The dropin rows
 * of the bench run it once as a client of gpushare and once straight on the device.
 *
 *   pace launch      ns of an asynchronous cudaLaunchKernel, its caller's
 *   pace sync        us from a launch to the end of cudaStreamSynchronize
 *   pace pinned      s for 64 MiB up and down, memory of cudaMallocHost
 *   pace pageable    the same, memory of malloc
 *   pace allocate    ms for the allocations of a step, and for those of the first one
 *   pace start       ms of the first call
 *   pace steady N    writes that N bursts made, each of which it has seen end without a wait, and
 *                    pauses between two commands
 *
 * It prints one number, or two, each the median of rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cuda/runtime/runtime_exports.h"
#include "tests/programs/cudart/image.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c,\n"
                          "    .param .u32 count)\n{\n    ret;\n}\n";

/* The address under which nvcc registers a kernel is that of its stub in the program. */
static char nothing;
static struct image image;

#define OK(call)                                                                                   \
    do {                                                                                           \
        cudart_error error_ = (call);                                                              \
        if (error_ != 0) {                                                                         \
            fprintf(stderr, "pace: %s: %s\n", #call, cudaGetErrorName(error_));                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static void begin(void)
{
    image_make(&image, ptx, 70);
    void **handle = __cudaRegisterFatBinary(&image.wrapper);
    __cudaRegisterFunction(handle, &nothing, (char *)"nothing", "nothing", -1, NULL, NULL, NULL,
                           NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static void launch_with(cudart_dim3 grid, cudart_dim3 block)
{
    static uint64_t zero;
    static uint32_t count;
    void *parameters[] = {&zero, &zero, &zero, &count};
    OK(cudaLaunchKernel(&nothing, grid, block, parameters, 0, NULL));
}

static void launch(void)
{
    launch_with((cudart_dim3){16, 1, 1}, (cudart_dim3){128, 1, 1});
}

/* The device does it faster than a program launches. */
static void launch_small(void)
{
    launch_with((cudart_dim3){1, 1, 1}, (cudart_dim3){32, 1, 1});
}

static void measure_launch(void)
{
    enum { BURST = 512, ROUNDS = 200 };
    double rounds[ROUNDS];
    launch();
    OK(cudaDeviceSynchronize());
    for (int round = 0; round < ROUNDS; round++) {
        double from = now();
        for (int i = 0; i < BURST; i++)
            launch();
        rounds[round] = (now() - from) / BURST * 1e9;
        OK(cudaDeviceSynchronize());
    }
    printf("%.9g\n", median(rounds, ROUNDS));
}

static void measure_sync(void)
{
    enum { WARM = 50, TRIPS = 1000 };
    double trips[TRIPS];
    for (int i = -WARM; i < TRIPS; i++) {
        double from = now();
        launch();
        OK(cudaStreamSynchronize(NULL));
        if (i >= 0)
            trips[i] = (now() - from) * 1e6;
    }
    printf("%.9g\n", median(trips, TRIPS));
}

static void copy(void *host)
{
    enum { BYTES = 64 << 20, WARM = 2, ROUNDS = 9 };
    double rounds[ROUNDS];
    void *device;
    OK(cudaMalloc(&device, BYTES));
    memset(host, 3, BYTES);
    for (int i = -WARM; i < ROUNDS; i++) {
        double from = now();
        OK(cudaMemcpy(device, host, BYTES, CUDART_HOST_TO_DEVICE));
        OK(cudaMemcpy(host, device, BYTES, CUDART_DEVICE_TO_HOST));
        if (i >= 0)
            rounds[i] = now() - from;
    }
    printf("%.9g\n", median(rounds, ROUNDS));
}

static void measure_pinned(void)
{
    void *host;
    OK(cudaMallocHost(&host, 64 << 20));
    copy(host);
}

static void measure_pageable(void)
{
    void *host = malloc(64 << 20);
    if (!host)
        exit(1);
    copy(host);
}

/* A step of a small network's training allocates activations, gradients and workspaces, from
 * some bytes to 64 MiB, given back in the reverse order. First at once, then in a stream's order.
 */
static double allocate_step(void)
{
    static const size_t sizes[] = {512,     4096,    131072, 2097152,  2097152,  8388608, 33554432,
                                   4194304, 1048576, 65536,  16777216, 67108864, 8192,    262144};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    void *blocks[COUNT];
    double from = now();
    for (int i = 0; i < COUNT; i++)
        OK(cudaMalloc(&blocks[i], sizes[i]));
    for (int i = COUNT; i-- > 0;)
        OK(cudaFree(blocks[i]));
    for (int i = 0; i < COUNT; i++)
        OK(cudaMallocAsync(&blocks[i], sizes[i], NULL));
    launch();
    for (int i = COUNT; i-- > 0;)
        OK(cudaFreeAsync(blocks[i], NULL));
    OK(cudaDeviceSynchronize());
    return (now() - from) * 1e3;
}

static void measure_allocate(void)
{
    enum { ROUNDS = 15 };
    double rounds[ROUNDS];
    OK(cudaFree(NULL));
    launch();
    OK(cudaDeviceSynchronize());
    double cold = allocate_step();
    for (int i = 0; i < ROUNDS; i++)
        rounds[i] = allocate_step();
    printf("%.9g %.9g\n", median(rounds, ROUNDS), cold);
}

static void measure_start(void)
{
    double from = now();
    OK(cudaFree(NULL));
    printf("%.9g\n", (now() - from) * 1e3);
}

/* How often this process has called write, as the kernel counts it. */
static unsigned long writes(void)
{
    char line[64];
    unsigned long count;
    FILE *file = fopen("/proc/self/io", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "syscw: %lu", &count) == 1) {
            fclose(file);
            return count;
        }
    fprintf(stderr, "pace: /proc/self/io does not count writes\n");
    exit(1);
}

/*
 * The worker's submitter stays awake for 50 us behind the last command. A command that is put in
 * later than that behind the begin of the one before it may find it asleep, and no other one may.
 */
enum { AWAKE_NS = 50000 };

struct commands {
    double begun_at; /* the last one */
    unsigned long pauses;
};

static void note_command(struct commands *commands, double begun_at)
{
    commands->pauses += now() - commands->begun_at > AWAKE_NS * 1e-9;
    commands->begun_at = begun_at;
}

/* A burst waits for the one before the last, without a system call, so that no ring is full. A test
 * counts the other system calls of few and of many bursts. */
static void go_on(unsigned long bursts)
{
    enum { BURST = 64, EVENTS = 3, WARM = 50 };
    cuda_event events[EVENTS];
    struct commands commands = {.begun_at = now()};
    unsigned long before = 0;
    for (int i = 0; i < EVENTS; i++)
        OK(cudaEventCreate(&events[i]));
    for (unsigned long burst = 0; burst < WARM + bursts; burst++) {
        cudart_error state;
        double begun_at;
        if (burst == WARM) {
            before = writes();
            commands.pauses = 0;
        }
        for (int i = 0; i < BURST; i++) {
            begun_at = now();
            launch_small();
            note_command(&commands, begun_at);
        }
        begun_at = now();
        OK(cudaEventRecord(events[burst % EVENTS], NULL));
        note_command(&commands, begun_at);
        do
            state = cudaEventQuery(events[(burst + 1) % EVENTS]);
        while (state == CUDA_ERR_NOT_READY);
        OK(state);
    }
    printf("%lu %lu\n", writes() - before, commands.pauses);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*measure)(void);
    } modes[] = {{"launch", measure_launch},     {"sync", measure_sync},
                 {"pinned", measure_pinned},     {"pageable", measure_pageable},
                 {"allocate", measure_allocate}, {"start", measure_start}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (count == 2 && strcmp(words[1], modes[i].name) == 0) {
            begin();
            modes[i].measure();
            return fflush(stdout) == 0 ? 0 : 1;
        }
    if (count == 3 && strcmp(words[1], "steady") == 0) {
        begin();
        go_on(strtoul(words[2], NULL, 10));
        return 0;
    }
    fprintf(stderr, "usage: pace launch|sync|pinned|pageable|allocate|start|steady N\n");
    return 2;
}
