/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * neighbour_streams: a client on its own half of the multiprocessors, by request, has four streams
 * with kernels of 1 ms. Its neighbour on the other half has 1, 40 or 100 streams, with kernels of a
 * length that is drawn, 0.2 to 5 ms. Throughput is the client's kernels in a second, the median of
 * seven stretches beside the neighbour, in turn with stretches in which that has nothing to do.
 *
 * The row is the worst of the three, as a part of the best median without the neighbour's work:
 * what a neighbour leaves behind it counts as well. It is not met if the neighbour ran fewer
 * kernels in one of its stretches than it has streams.
 *
 * No more neighbours: the one that is drawn is the scene.
 */
#include <stdio.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"

enum { SCENES = 3, ROUNDS = 7, MOST = 1 << 18, SETTLE_US = 100000 };

static const uint32_t counts[SCENES] = {1, 40, 100};

static struct load *client(const struct server *server, const char *name, uint32_t streams,
                           uint64_t kernel_ns)
{
    static const char *const half[] = {"GPUSHARE_THREADS_REQUEST=50%",
                                       "GPUSHARE_ACTIVE_THREAD_PERCENTAGE=50", NULL};
    struct load_spec spec = {.name = name,
                             .env = half,
                             .kernel_ns = kernel_ns,
                             .streams = streams,
                             .depth = 8 * streams,
                             .most = MOST,
                             .endless = true};
    return load_start(server, &spec);
}

static double kernels_per_second(const struct load *load)
{
    usleep(SETTLE_US);
    uint32_t before = load_whole(load);
    double start = bench_now();
    bench_sleep_until(start + (bench_short ? 0.2 : 0.6));
    return (load_whole(load) - before) / (bench_now() - start);
}

/* Waits until the server has given back what a client that left had asked for. */
static void await_alone(int admin)
{
    size_t clients = 0;
    for (double end = bench_now() + 20; bench_now() < end; usleep(5000)) {
        json_t *answer = administer(admin, "{\"request\":\"clients\"}");
        clients = json_array_size(json_object_get(answer, "clients"));
        json_decref(answer);
        if (clients == 1)
            return;
    }
    bench_die("a client that ended is still there after 20 s");
}

static void beside(const struct server *server, int admin, struct load *load, uint32_t streams,
                   uint64_t kernel_ns, struct bench_result *pairs)
{
    double values[ROUNDS], yardsticks[ROUNDS];
    const unsigned rounds = bench_short ? 3 : ROUNDS;
    struct load *neighbour = client(server, "neighbour", streams, kernel_ns);
    for (unsigned i = 0; i < rounds; i++) {
        yardsticks[i] = kernels_per_second(load);
        uint32_t before = load_whole(neighbour);
        load_go(neighbour);
        values[i] = kernels_per_second(load);
        uint32_t ran = load_whole(neighbour) - before;
        if (ran < streams)
            bench_doubt(pairs, "the neighbour with %u streams ran %u kernels in a stretch", streams,
                        ran);
        load_rest(neighbour);
        load_settle(neighbour);
    }
    load_stop(neighbour);
    load_free(neighbour);
    await_alone(admin);
    bench_pairs(pairs, values, yardsticks, rounds);
}

void bench_neighbour_streams(struct bench_result *result)
{
    struct bench_result pairs[SCENES] = {0};
    uint64_t scene = bench_seed;
    double alone = 0;
    int used = 0;
    struct server *server = bench_server_steady(NULL);
    struct load *load = client(server, "beside", 4, 1000000);
    int admin = administer_open(server);
    load_go(load);
    for (size_t i = 0; i < SCENES; i++) {
        uint64_t ns = bench_draw(&scene, 200, 5000) * 1000;
        beside(server, admin, load, counts[i], ns, &pairs[i]);
        if (pairs[i].fault[0])
            bench_doubt(result, "%s", pairs[i].fault);
        alone = pairs[i].yardstick > alone ? pairs[i].yardstick : alone;
        used +=
            snprintf(result->note + used, sizeof result->note - (size_t)used,
                     "%s%.0f kernels/s beside %u streams of %.1f ms, %.0f without", i ? "; " : "",
                     pairs[i].value, counts[i], (double)ns / 1e6, pairs[i].yardstick);
    }
    result->value = pairs[0].value / alone;
    for (size_t i = 1; i < SCENES; i++)
        if (pairs[i].value / alone < result->value) {
            result->value = pairs[i].value / alone;
            result->spread = pairs[i].spread;
        }
    load_stop(load);
    load_free(load);
    close(admin);
    bench_server_stop(server);
}
