/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * share_change_ms: the share of a client changes a thousand times, between 25 % and 50 % of the
 * threads, while it has hundreds of launches of 1 ms in its queue. A change takes from the moment
 * before the command is sent to the first block that ran on the new set of multiprocessors. The row
 * is the 99th percentile. The words that the blocks wrote say where and when each launch ran, and
 * that none was lost.
 */
#include <stdio.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"
#include "tests/programs/bench/quiet.h"

/* A change is dropped if others disturbed the machine so long after its call, however long it took:
 * by its own time, the long ones would be dropped more often. */
#define GOAL_SECONDS 0.02

enum { CHANGES = 1000, DEPTH = 500, LAUNCHES_MAX = 40000, KERNEL_NS = 1000000 };

static uint32_t highest_sm(const struct load *load, uint32_t launch)
{
    const struct span *at = &load->spans[(size_t)launch * load->spec.blocks];
    uint32_t highest = 0;
    for (uint32_t i = 0; i < load->spec.blocks; i++)
        highest = at[i].sm > highest ? at[i].sm : highest;
    return highest;
}

static uint64_t first_begin(const struct load *load, uint32_t launch)
{
    const struct span *at = &load->spans[(size_t)launch * load->spec.blocks];
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < load->spec.blocks; i++)
        first = at[i].begin < first ? at[i].begin : first;
    return first;
}

/* The highest multiprocessor of a set. It is read from the last of enough launches for all earlier
 * ones in the queue to be done. */
static uint32_t highest_of(const struct load *load, int admin, const char *threads)
{
    administer_threads(admin, load->page->client, threads);
    uint32_t until = load_whole(load) + 2 * DEPTH;
    for (double end = bench_now() + 60; load_whole(load) < until; usleep(1000))
        if (bench_now() > end)
            bench_die("a client makes no progress");
    return highest_sm(load, until - 1);
}

/* When the first launch from this one on began that has all its blocks on the new set. */
static uint64_t wait_for_set(const struct load *load, uint32_t from, bool larger, uint32_t small)
{
    double end = bench_now() + 20;
    for (uint32_t i = from; bench_now() < end; usleep(500))
        for (; i < load_whole(load); i++)
            if ((highest_sm(load, i) > small) == larger)
                return first_begin(load, i);
    bench_die("a change of share had no effect for 20 s");
}

void bench_share_change(struct bench_result *result)
{
    static double called[CHANGES], all[CHANGES], took[CHANGES];
    /* A smaller device is enough: the cost of each kernel to the machine grows with the device. */
    const char *soft[] = {"SOFTGPU_SMS=32", NULL};
    const char *env[] = {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=50", NULL};
    struct server *server = bench_server_soft(soft);
    struct load_spec spec = {.name = "changed",
                             .env = env,
                             .kernel_ns = KERNEL_NS,
                             .blocks = bench_multiprocessors(server) / 2,
                             .most = LAUNCHES_MAX,
                             .depth = DEPTH,
                             .drain = true};
    struct load *load = load_start(server, &spec);
    int admin = administer_open(server);
    unsigned changes = bench_short ? CHANGES / 20 : CHANGES, count = 0;
    load_go(load);
    uint32_t small = highest_of(load, admin, "25%");
    uint32_t large = highest_of(load, admin, "50%");
    if (small >= large)
        bench_die("the sets of 25 %% and 50 %% can't be told apart (%u, %u)", small, large);
    quiet_start();
    for (unsigned i = 0; i < changes; i++) {
        bool larger = i % 2;
        uint32_t from = load_whole(load);
        called[i] = bench_now();
        administer_threads(admin, load->page->client, larger ? "50%" : "25%");
        uint64_t begun = wait_for_set(load, from, larger, small);
        all[i] = ((double)begun - (double)load_device_time(load, called[i])) / 1e6;
    }
    quiet_stop();
    load_stop(load);
    close(admin);
    for (unsigned i = 0; i < changes; i++)
        if (quiet_between(called[i], called[i] + GOAL_SECONDS))
            took[count++] = all[i];
    quiet_judge_dropped(result, changes - count, changes);
    result->value = span_percentile(took, count, 99);
    double median = span_percentile(took, count, 50);
    result->spread = (took[count * 3 / 4] - took[count / 4]) / median;
    snprintf(
        result->note, sizeof result->note,
        "p99 of %u, median %.2f, most %.2f; %u dropped, p99 of all %.2f; %u launches, %d in the "
        "queue, none lost",
        count, median, took[count - 1], changes - count, span_percentile(all, changes, 99),
        load->page->launches, DEPTH);
    load_free(load);
    bench_server_stop(server);
}
