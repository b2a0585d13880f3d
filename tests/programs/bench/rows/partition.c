/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * threads_30_70_error: one client at 30 % of the threads and one at 70 %, each alone and both
 * together.
 *
 * A block takes a whole multiprocessor (by its shared memory). So the sum of the times for which
 * blocks ran in a stretch of time, divided by that stretch, is the number of multiprocessors that
 * the client had. The error is that number's distance from the number granted, divided by it. The
 * row is the largest of the four errors. The row ends with a failure if a grant is not the
 * percentage asked for, rounded down.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"

enum { BLOCK_NS = 5000000, BLOCKS = 4000, LEAD_NS = 20000000 };
static const uint64_t stretch_ns = 150000000;

static void one_launch(struct load *child)
{
    while (load_resting(child))
        usleep(1000);
    load_wait(child, load_launch(child, child->spec.kernel_ns));
}

static struct load *client(const struct server *server, const char *percentage)
{
    const char *env[] = {percentage, NULL};
    struct load_spec spec = {.name = percentage,
                             .env = env,
                             .kernel_ns = BLOCK_NS,
                             .blocks = BLOCKS,
                             .whole_sm = true,
                             .most = 32, /* finding the clock takes one after another */
                             .drain = true,
                             .behave = one_launch};
    return load_start(server, &spec);
}

static void check_granted(const struct load *load, uint32_t percent, uint32_t all)
{
    uint32_t granted = load->page->multiprocessors, asked = all * percent / 100;
    if (granted > asked || granted < asked - asked / 5)
        bench_die("%u %% of %u multiprocessors were asked for, and %u granted", percent, all,
                  granted);
}

static uint64_t first_begin(const struct load *load)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < load_spans(load); i++)
        first = load->spans[i].begin < first ? load->spans[i].begin : first;
    return first;
}

static double error_of(const struct load *load, uint64_t from)
{
    uint64_t last = 0;
    for (size_t i = 0; i < load_spans(load); i++)
        last = load->spans[i].begin > last ? load->spans[i].begin : last;
    /* A client that has more than it was granted is done sooner. */
    uint64_t to = last < from + stretch_ns ? last : from + stretch_ns;
    if (to <= from)
        return 1;
    double had = (double)load_ns(load, from, to) / (double)(to - from);
    return fabs(had / load->page->multiprocessors - 1);
}

/* Runs the clients at the same time, and computes their errors. */
static void run(struct load **loads, unsigned count, double *errors)
{
    uint64_t from = 0;
    for (unsigned i = 0; i < count; i++)
        load_go(loads[i]);
    for (unsigned i = 0; i < count; i++) {
        load_finish(loads[i]);
        uint64_t first = first_begin(loads[i]);
        from = first > from ? first : from;
    }
    for (unsigned i = 0; i < count; i++)
        errors[i] = error_of(loads[i], from + LEAD_NS);
}

void bench_threads_30_70(struct bench_result *result)
{
    static const char small[] = "GPUSHARE_ACTIVE_THREAD_PERCENTAGE=30";
    static const char large[] = "GPUSHARE_ACTIVE_THREAD_PERCENTAGE=70";
    double errors[4];
    struct server *server = bench_server_steady(NULL);
    struct load *one = client(server, small);
    run(&one, 1, &errors[0]);
    struct load *other = client(server, large);
    run(&other, 1, &errors[1]);
    struct load *both[] = {client(server, small), client(server, large)};
    run(both, 2, &errors[2]);
    uint32_t all = bench_multiprocessors(server);
    check_granted(both[0], 30, all);
    check_granted(both[1], 70, all);
    snprintf(result->note, sizeof result->note,
             "%u and %u multiprocessors granted; alone %.4f and %.4f, together %.4f and %.4f",
             both[0]->page->multiprocessors, both[1]->page->multiprocessors, errors[0], errors[1],
             errors[2], errors[3]);
    for (int i = 0; i < 4; i++)
        result->value = errors[i] > result->value ? errors[i] : result->value;
    load_free(one);
    load_free(other);
    load_free(both[0]);
    load_free(both[1]);
    bench_server_stop(server);
}
