/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The cost of launches, from one thread and several, and by a replayed graph; the cost of pinning.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

/* 100 launches are far below a queue's 1,024 entries, so none waits for room. */
enum { ROUNDS = 50, BURST = 100, THREADS_MAX = 16 };

struct launcher {
    pthread_t thread;
    cuda_stream stream;
    cuda_function nothing;
    extra_graph_exec graph; /* NULL: cuLaunchKernel */
    double ns[ROUNDS * BURST];
    double burst_ns; /* whole rounds, to the end of the work, for each launch */
};

static void launch_bursts(struct launcher *launcher)
{
    uint64_t all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t round_began = probe_ns();
        for (int i = 0; i < BURST; i++) {
            uint64_t began = probe_ns();
            cuda_result result = launcher->graph
                                     ? extra.cuGraphLaunch(launcher->graph, launcher->stream)
                                     : cu.cuLaunchKernel(launcher->nothing, 1, 1, 1, 1, 1, 1, 0,
                                                         launcher->stream, NULL, NULL);
            launcher->ns[round * BURST + i] = (double)(probe_ns() - began);
            if (result != CUDA_OK)
                probe_die("launch %d: %s", i, probe_error(result));
        }
        CU_QUIET(cu.cuStreamSynchronize(launcher->stream));
        all += probe_ns() - round_began;
    }
    launcher->burst_ns = (double)all / (ROUNDS * BURST);
}

static void *run_launcher(void *context)
{
    cuda_context current;
    CU_QUIET(cu.cuDevicePrimaryCtxRetain(&current, 0));
    CU_QUIET(cu.cuCtxSetCurrent(current));
    launch_bursts(context);
    return NULL;
}

void step_launch_cost(const char *argument)
{
    static struct launcher launchers[THREADS_MAX];
    static double all[THREADS_MAX * ROUNDS * BURST];
    struct probe_partition partition;
    unsigned threads = (unsigned)strtoul(argument, NULL, 10);
    size_t count = 0;
    probe_open();
    probe_context();
    bool green = probe_partitions(&partition, 1, 8);
    for (unsigned i = 0; i < threads; i++) {
        launchers[i].nothing = probe_function("nothing");
        if (green)
            CU(cu.cuGreenCtxStreamCreate(&launchers[i].stream, partition.green,
                                         CUDA_STREAM_NON_BLOCKING, 0));
        else
            CU(cu.cuStreamCreate(&launchers[i].stream, CUDA_STREAM_NON_BLOCKING));
        probe_launch_last(launchers[i].stream, 1000);
    }
    CU(cu.cuCtxSynchronize());
    uint64_t began = probe_ns();
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&launchers[i].thread, NULL, run_launcher, &launchers[i]) != 0)
            probe_die("no thread");
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(launchers[i].thread, NULL);
        memcpy(all + count, launchers[i].ns, sizeof launchers[i].ns);
        count += ROUNDS * BURST;
    }
    double rate = (double)count / ((double)(probe_ns() - began) / 1e9);
    double p50 = probe_quantile(all, count, 0.5) / 1e3,
           p99 = probe_quantile(all, count, 0.99) / 1e3;
    probe_measure("launch_p50_us", p50, "us");
    probe_measure("launch_p99_us", p99, "us");
    probe_measure("launches_per_second", rate, "1/s");
    probe_note("threads of one context: %u; a launch takes %.2f us (median), %.2f us at the 99th "
               "percentile; %.0f launches a second in all",
               threads, p50, p99, rate);
}

void step_graph_cost(const char *argument)
{
    (void)argument;
    static struct launcher plain, graph;
    struct probe_partition partition;
    extra_graph made;
    extra_graph_node node;
    probe_open();
    probe_context();
    if (!extra_has_graph(&extra))
        probe_die("this driver has no graphs");
    probe_partitions(&partition, 1, 8);
    plain.stream = graph.stream = partition.stream;
    plain.nothing = probe_function("nothing");
    struct extra_kernel_node kernel = {.function = plain.nothing,
                                       .grid_x = 1,
                                       .grid_y = 1,
                                       .grid_z = 1,
                                       .block_x = 1,
                                       .block_y = 1,
                                       .block_z = 1};
    CU(extra.cuGraphCreate(&made, 0));
    CU(extra.cuGraphAddKernelNode(&node, made, NULL, 0, &kernel));
    CU(extra.cuGraphInstantiateWithFlags(&graph.graph, made, 0));
    probe_launch_last(partition.stream, 1000);
    CU(extra.cuGraphLaunch(graph.graph, partition.stream));
    CU(cu.cuCtxSynchronize());
    launch_bursts(&plain);
    launch_bursts(&graph);
    double by_launch = probe_quantile(plain.ns, ROUNDS * BURST, 0.5) / 1e3,
           by_graph = probe_quantile(graph.ns, ROUNDS * BURST, 0.5) / 1e3;
    probe_measure("launch_p50_us", by_launch, "us");
    probe_measure("graph_p50_us", by_graph, "us");
    probe_measure("launch_to_end_us", plain.burst_ns / 1e3, "us");
    probe_measure("graph_to_end_us", graph.burst_ns / 1e3, "us");
    probe_judge(by_graph >= by_launch * 0.8, "launch-is-as-cheap-as-a-graph",
                "a launch takes %.2f us, the replay of a one-node graph %.2f us (medians); to the "
                "end of the work %.2f and %.2f us each",
                by_launch, by_graph, plain.burst_ns / 1e3, graph.burst_ns / 1e3);
}

/* ---- pinning --------------------------------------------------------------------------- */
static void *map_memory(unsigned flags, int protection, size_t bytes)
{
    int fd = memfd_create("gpushare-check", flags | MFD_CLOEXEC);
    if (fd < 0)
        return NULL;
    void *memory = MAP_FAILED;
    if (ftruncate(fd, (off_t)bytes) == 0) {
        /* Written through another mapping first, for one that can't be written has no pages. */
        void *writable = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (writable != MAP_FAILED) {
            memset(writable, 1, bytes);
            memory = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
            munmap(writable, bytes);
        }
    }
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

static void tell_pinning(const char *name, void *memory, size_t bytes, unsigned flags)
{
    char measure[80];
    if (!memory) {
        printf("%s: no such memory here: %s\n", name, strerror(errno));
        return;
    }
    probe_call(name);
    uint64_t began = probe_ns();
    cuda_result result = cu.cuMemHostRegister(memory, bytes, flags);
    double ms = (double)(probe_ns() - began) / 1e6;
    printf("%s: %s after %.2f ms\n", name, result == CUDA_OK ? "registered" : probe_error(result),
           ms);
    if (result != CUDA_OK)
        return;
    snprintf(measure, sizeof measure, "%s_ms_a_gib", name);
    probe_measure(measure, ms * 1024 / (double)(bytes >> 20), "ms");
    CU(cu.cuMemHostUnregister(memory));
}

void step_pinning_cost(const char *argument)
{
    (void)argument;
    size_t bytes = PROBE_REGISTER_STEP * 4;
    probe_open();
    probe_context();
    tell_pinning("small_pages", map_memory(0, PROT_READ | PROT_WRITE, bytes), bytes,
                 CUDA_HOST_REGISTER_PORTABLE);
    tell_pinning("huge_pages", map_memory(MFD_HUGETLB, PROT_READ | PROT_WRITE, bytes), bytes,
                 CUDA_HOST_REGISTER_PORTABLE);
    if (probe_attribute(CUDA_ATTR_READ_ONLY_HOST_REGISTER_SUPPORTED) == 1)
        tell_pinning("read_only", map_memory(0, PROT_READ, bytes), bytes,
                     CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_READ_ONLY);
    probe_note("256 MiB registered in each way that this machine has; see the measures");
}
