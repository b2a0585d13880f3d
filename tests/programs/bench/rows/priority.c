/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * priority_p99: an urgent client launches one kernel of 1 ms on the whole device at random moments,
 * first alone, then beside three clients of lower priority that keep the device full with such
 * kernels. A launch takes from the call to the end that its last block wrote.
 *
 * The row is the 99th percentile beside the others. Its yardstick is the 99th percentile alone (no
 * more than a quarter of a kernel above the median) plus one kernel, since a running kernel can't
 * be stopped. Launches are dropped from both, and counted, if other programs disturbed the
 * machine (quiet.h) in the time that the row's goal is after their call. The note has the 99th
 * percentile of all of them too. Neighbours are of the lower priority.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/company.h"
#include "tests/programs/bench/load.h"
#include "tests/programs/bench/quiet.h"

/* Twice a kernel, as the yardstick is, and what the ratio allows beyond it. */
#define GOAL_SECONDS (2.2e-9 * KERNEL_NS)

enum { LAUNCHES = 1000, KERNEL_NS = 1000000, LOW = 3, LOW_MAX = 30000 };

static unsigned launches_wanted(void)
{
    return bench_short ? LAUNCHES / 10 : LAUNCHES;
}

/* Records the time at which each launch was called for. */
static void urgent(struct load *child)
{
    unsigned seed = 1, launches = launches_wanted();
    while (load_resting(child) && !load_stopped(child))
        usleep(1000);
    for (unsigned i = 0; i < launches && !load_stopped(child); i++) {
        usleep((unsigned)(rand_r(&seed) % 4000));
        load_tell(child, bench_now());
        load_launch(child, child->spec.kernel_ns);
        BENCH_CHECK(gpushare_synchronize(child->gpu));
    }
}

static struct load *client(const struct server *server, const char *priority, uint32_t blocks,
                           void (*behave)(struct load *child))
{
    const char *env[] = {priority, NULL};
    struct load_spec spec = {.name = priority,
                             .env = env,
                             .kernel_ns = KERNEL_NS,
                             .blocks = blocks,
                             .whole_sm = true,
                             .most = behave ? LAUNCHES + 1 : LOW_MAX,
                             .drain = behave != NULL,
                             .behave = behave};
    return load_start(server, &spec);
}

static uint64_t end_of(const struct load *load, uint32_t launch)
{
    const struct span *at = &load->spans[(size_t)launch * load->spec.blocks];
    uint64_t end = 0;
    for (uint32_t i = 0; i < load->spec.blocks; i++)
        end = at[i].end > end ? at[i].end : end;
    return end;
}

/* Fills in the milliseconds of all launches, and of each that others did not disturb. Returns how
 * many these are. */
static unsigned latencies(struct bench_result *result, const struct load *load, double *all,
                          double *took)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < load->page->times; i++) {
        double from = load->page->time[i];
        double ms = ((double)end_of(load, i) - (double)load_device_time(load, from)) / 1e6;
        all[i] = ms;
        if (quiet_between(from, from + GOAL_SECONDS))
            took[count++] = ms;
    }
    quiet_judge_dropped(result, load->page->times - count, load->page->times);
    return count;
}

/* Lets the urgent client make its launches. Returns the percentile; *of_all is that with those that
 * were dropped, which are added to *dropped. */
static double measure(struct bench_result *result, struct load *load, unsigned *dropped,
                      double *median, double *of_all)
{
    static double took[LOAD_TIMES], all[LOAD_TIMES];
    quiet_start();
    load_go(load);
    load_finish(load);
    quiet_stop();
    unsigned count = latencies(result, load, all, took);
    *of_all = span_percentile(all, load->page->times, 99);
    *dropped += load->page->times - count;
    *median = span_percentile(took, count, 50);
    return span_percentile(took, count, 99);
}

void bench_priority(struct bench_result *result)
{
    /* A smaller device is enough: the cost of each kernel to the machine grows with the device. */
    const char *env[] = {"SOFTGPU_SMS=16", NULL};
    if (setenv("GPUSHARE_CLIENT_PRIORITY", "1", 1)) /* for the neighbours */
        bench_die("out of memory");
    struct server *server = bench_server_steady(env);
    struct load *low[LOW];
    unsigned dropped = 0;
    double alone_median, median, alone_all, of_all;
    uint32_t blocks = bench_multiprocessors(server);
    struct load *alone = client(server, "GPUSHARE_CLIENT_PRIORITY=0", blocks, urgent);
    double yardstick = measure(result, alone, &dropped, &alone_median, &alone_all);
    /* A percentile far above the median, alone, is caused by the machine, and must not excuse the
     * row. */
    if (yardstick > alone_median + KERNEL_NS / 4e6)
        yardstick = alone_median + KERNEL_NS / 4e6;
    yardstick += KERNEL_NS / 1e6;
    struct load *high = client(server, "GPUSHARE_CLIENT_PRIORITY=0", blocks, urgent);
    for (int i = 0; i < LOW; i++) {
        low[i] = client(server, "GPUSHARE_CLIENT_PRIORITY=1", blocks, NULL);
        load_go(low[i]);
    }
    usleep(500000);
    result->value = measure(result, high, &dropped, &median, &of_all);
    result->yardstick = yardstick;
    result->ratio = result->value / yardstick;
    uint64_t from = load_device_time(high, high->page->time[0]), busy = 0;
    uint64_t to = load_device_time(high, high->page->time[high->page->times - 1]);
    for (int i = 0; i < LOW; i++) {
        load_stop(low[i]);
        busy += load_ns(low[i], from, to) / blocks;
        load_free(low[i]);
    }
    double filled = (double)busy / (double)(to - from);
    /* Without a full device any client would be quick; neighbours fill it as well. */
    if (filled < 0.4 && !bench_short && !company_expected())
        bench_doubt(result,
                    "the low clients had the device for %.0f %% of the time: they did not fill it",
                    100 * filled);
    snprintf(result->note, sizeof result->note,
             "medians %.2f, alone %.2f; the low ones kept the device busy for %.0f %% of the time; "
             "%u of %u launches dropped, p99 of all %.2f, alone %.2f",
             median, alone_median, 100 * filled, dropped, 2 * launches_wanted(), of_all, alone_all);
    load_free(alone);
    load_free(high);
    bench_server_stop(server);
}
