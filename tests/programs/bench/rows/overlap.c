/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The overlap and share rows: kernels and copies of modelled time on the software GPU,
 * measured by the wall clock of the clients.
 *
 * The control has no neighbours: its device runs one kernel at a time, also of theirs. Nor has
 * threads_25_alone: it compares two clients that are alone, and a neighbour in the last wave of the
 * whole device's blocks would count four times.
 */
#include <pthread.h>
#include <stdio.h>

#include "tests/programs/bench/bench.h"

/* Of the 132 multiprocessors, 50 % are 8 SM groups of 8. Shared memory lets one block of a half's
 * kernel run on each, beside neighbours' blocks: on fewer, or on the same ones as the other client,
 * it would take twice as long. */
enum { OVERLAP_ROUNDS = 5, HALF_PERCENT = 50, HALF_BLOCKS = 64, HALF_SHARED = 120 << 10 };

/* One client's part of a round, which runs in a thread of its own. */
struct part {
    gpushare_connection *gpu;
    gpushare_function *occupy;
    gpushare_address device;
    void *host;
    enum { KERNEL, TO_DEVICE, FROM_DEVICE } kind;
    uint64_t bytes;
    uint64_t ns;
    unsigned blocks, threads, shared, launches;
    pthread_barrier_t *start;
    double ended;
};

static void *part_main(void *context)
{
    struct part *part = context;
    struct gpushare_dim grid = {part->blocks, 1, 1}, block = {part->threads, 1, 1};
    void *parameters[] = {&part->ns};
    if (part->start)
        pthread_barrier_wait(part->start);
    if (part->kind == TO_DEVICE)
        BENCH_CHECK(
            gpushare_copy_to_device_async(part->gpu, part->device, part->host, part->bytes, NULL));
    else if (part->kind == FROM_DEVICE)
        BENCH_CHECK(gpushare_copy_from_device_async(part->gpu, part->host, part->device,
                                                    part->bytes, NULL));
    else
        for (unsigned i = 0; i < part->launches; i++)
            BENCH_CHECK(gpushare_launch(part->occupy, grid, block, part->shared, NULL, parameters));
    BENCH_CHECK(gpushare_synchronize(part->gpu));
    part->ended = bench_now();
    return NULL;
}

/* Starts the parts together. Returns the seconds until the last one is done. */
static double together(struct part **parts, unsigned count)
{
    pthread_t threads[4];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        parts[i]->start = &start;
        if (pthread_create(&threads[i], NULL, part_main, parts[i]))
            bench_die("no thread for a client");
    }
    double began = bench_now(), ended = 0;
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        ended = parts[i]->ended > ended ? parts[i]->ended : ended;
    }
    pthread_barrier_destroy(&start);
    return ended - began;
}

static struct part kernel_part(const struct server *server, double percentage, unsigned blocks,
                               uint64_t ns, unsigned launches)
{
    struct part part = {
        .kind = KERNEL, .blocks = blocks, .threads = 32, .ns = ns, .launches = launches};
    part.gpu = bench_connect(server, percentage);
    part.occupy = bench_function(part.gpu, "occupy");
    return part;
}

static void overlap(struct bench_result *result, const char *const env[])
{
    double values[OVERLAP_ROUNDS], yardsticks[OVERLAP_ROUNDS];
    const int rounds = bench_short ? 2 : OVERLAP_ROUNDS;
    struct server *server = bench_server_steady(env);
    struct part a = kernel_part(server, HALF_PERCENT, HALF_BLOCKS, 50000000, 4);
    struct part b = kernel_part(server, HALF_PERCENT, HALF_BLOCKS, 50000000, 4);
    struct part *both[] = {&a, &b}, *one[] = {&a};
    a.shared = b.shared = HALF_SHARED;
    BENCH_CHECK(gpushare_function_set_shared(a.occupy, HALF_SHARED));
    BENCH_CHECK(gpushare_function_set_shared(b.occupy, HALF_SHARED));
    together(both, 2);
    for (int i = 0; i < rounds; i++) {
        yardsticks[i] = together(one, 1) * 1e3;
        values[i] = together(both, 2) * 1e3;
    }
    gpushare_close(&a.gpu);
    gpushare_close(&b.gpu);
    bench_server_stop(server);
    bench_pairs(result, values, yardsticks, rounds);
}

void bench_overlap_clients(struct bench_result *result)
{
    overlap(result, NULL);
}

void bench_overlap_control(struct bench_result *result)
{
    const char *env[] = {"SOFTGPU_SERIALIZE=1", NULL};
    overlap(result, env);
}

static struct part copy_part(const struct server *server, int kind, uint64_t bytes)
{
    struct part part = {.kind = kind, .bytes = bytes};
    part.gpu = bench_connect(server, 0);
    BENCH_CHECK(gpushare_memory_alloc(part.gpu, bytes, &part.device));
    BENCH_CHECK(gpushare_host_alloc(part.gpu, bytes, &part.host));
    return part;
}

void bench_overlap_copy_compute(struct bench_result *result)
{
    double values[OVERLAP_ROUNDS], yardsticks[OVERLAP_ROUNDS];
    const int rounds = bench_short ? 1 : OVERLAP_ROUNDS;
    const char *env[] = {"SOFTGPU_COPY_BYTES_PER_SECOND=1000000000", NULL};
    struct server *server = bench_server_steady(env);
    struct part up = copy_part(server, TO_DEVICE, 200000000);
    struct part down = copy_part(server, FROM_DEVICE, 200000000);
    struct part kernel = kernel_part(server, HALF_PERCENT, HALF_BLOCKS, 200000000, 1);
    struct part *all[] = {&up, &down, &kernel};
    together(all, 3);
    for (int i = 0; i < rounds; i++) {
        yardsticks[i] = 0;
        for (int k = 0; k < 3; k++) {
            double alone = together(&all[k], 1) * 1e3;
            yardsticks[i] = alone > yardsticks[i] ? alone : yardsticks[i];
        }
        values[i] = together(all, 3) * 1e3;
    }
    gpushare_close(&up.gpu);
    gpushare_close(&down.gpu);
    gpushare_close(&kernel.gpu);
    bench_server_stop(server);
    bench_pairs(result, values, yardsticks, (size_t)rounds);
}

/*
 * Shared memory lets two blocks of this kernel run on a multiprocessor at a time. The number of
 * blocks is a multiple of what both sizes of the device hold, so that neither has a half-empty last
 * wave.
 */
void bench_threads_25(struct bench_result *result)
{
    enum { SHARED = 100 << 10 };
    double values[OVERLAP_ROUNDS], yardsticks[OVERLAP_ROUNDS];
    struct server *server = bench_server_steady(NULL);
    struct part whole = kernel_part(server, 0, 0, 25000000, 1);
    struct part quarter = kernel_part(server, 25, 0, 25000000, 1);
    struct gpushare_limits limits = {.size = sizeof limits}, all = {.size = sizeof all};
    BENCH_CHECK(gpushare_limits(quarter.gpu, &limits));
    BENCH_CHECK(gpushare_limits(whole.gpu, &all));
    unsigned granted = limits.multiprocessors, sms = all.multiprocessors;
    if (!granted || granted * 4 > sms)
        bench_die("%u of %u multiprocessors are no quarter at most", granted, sms);
    whole.blocks = quarter.blocks = 2 * sms * (granted / 4);
    whole.shared = quarter.shared = SHARED;
    BENCH_CHECK(gpushare_function_set_shared(whole.occupy, SHARED));
    BENCH_CHECK(gpushare_function_set_shared(quarter.occupy, SHARED));
    struct part *one[] = {&quarter}, *other[] = {&whole};
    for (int i = 0; i < 3; i++) {
        /* Throughput in blocks a second. The yardstick is the whole device's, times the share
         * granted. */
        values[i] = quarter.blocks / together(one, 1);
        yardsticks[i] = whole.blocks / together(other, 1) * granted / sms;
    }
    gpushare_close(&whole.gpu);
    gpushare_close(&quarter.gpu);
    bench_server_stop(server);
    bench_pairs(result, values, yardsticks, 3);
    snprintf(result->note, sizeof result->note, "%u of %u multiprocessors granted", granted, sms);
}
