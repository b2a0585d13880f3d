/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * reclaim_ms_p99: a client has half of the multiprocessors by request, and works in bursts of
 * twenty kernels of 1 ms, with pauses of 20 to 26 ms. Another client keeps the whole device full
 * with kernels of 1 ms, so that it borrows that half. A block takes a whole multiprocessor (by its
 * shared memory), and each of the owner's kernels has a block for each multiprocessor that it owns.
 *
 * A reclaim takes from the owner's call to the later of two moments, as the blocks wrote them. One
 * is when the last block of the burst's first kernel began: then all multiprocessors are the
 * owner's again. The other is when the last block ended that the borrower had on one of them during
 * the burst.
 *
 * The row is the 99th percentile of that time, less what the borrower's blocks that were running at
 * the call took to their ends: a running block can't be stopped. If the multiprocessors are never
 * given back, that comes to the 20 ms of the burst.
 *
 * reclaim_ten_waves_ms_p99: the same beside a borrower with 32 streams, each with a grid of blocks
 * of 0.4 ms, ten times as many as the device has multiprocessors. Blocks that have not begun wait
 * on the device. The pauses are 400 to 520 ms: on its own half the borrower has a grid of each
 * stream on the device, which have to end before its next ones go to the lent half as well.
 *
 * Only reclaims of multiprocessors on which a kernel of the borrower ran in the 5 ms before are
 * counted: no others were lent. The row is not met if that is more than a quarter of the bursts.
 * Reclaims are dropped if other programs disturbed
 * the machine (quiet.h) in the time from the call that the row's goal is; a reclaim's own time
 * would drop the long ones more often. The note has the 99th percentile of all too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"
#include "tests/programs/bench/quiet.h"

enum {
    RECLAIMS = 1000,
    KERNEL_NS = 1000000,

    BURST = 20,
    SMS = 4096
};

static const struct borrower {
    const char *device;
    uint64_t kernel_ns;
    uint32_t waves, streams;     /* blocks for each multiprocessor; 0 streams: the default one */
    uint32_t most;               /* of its launches */
    uint32_t reclaims, pause_us; /* pause_us: the owner's shortest */
    double goal;                 /* of the row, in seconds */
} one_wave = {"SOFTGPU_SMS=32", KERNEL_NS, 1, 0, 90000, RECLAIMS, 20000, 0.010},
  ten_waves = {"SOFTGPU_SMS=16", 400000, 10, 32, 40000, RECLAIMS / 10, 400000, 0.015};
/* Set before the owner is forked. */
static uint32_t wanted, pause_us;

static void now_and_then(struct load *child)
{
    uint64_t scene = bench_seed;
    while (load_resting(child))
        usleep(1000);
    for (uint32_t i = 0; i < wanted && !load_stopped(child); i++) {
        usleep((useconds_t)bench_draw(&scene, pause_us, pause_us * 13 / 10));
        load_tell(child, bench_now());
        for (int k = 0; k < BURST; k++)
            load_launch(child, child->spec.kernel_ns);
        BENCH_CHECK(gpushare_synchronize(child->gpu));
    }
}

/* The borrower's blocks on a set of multiprocessors (one byte each). */
struct borrowed {
    unsigned before;   /* blocks that ran in the 5 ms before the call */
    uint64_t last_end; /* end of the last block between the call and the end of the burst */
    uint64_t ran_to; /* end of the last block that was running at the call; the call if none was */
};

/* Spans are in the order in which they began; *at is where the search goes on. */
static struct borrowed borrowed(const struct load *load, const uint8_t *set, uint64_t called,
                                uint64_t end, size_t *at)
{
    const uint64_t slack = 10 * KERNEL_NS;
    struct borrowed borrowed = {.ran_to = called};
    while (*at < load_spans(load) && load->spans[*at].begin + slack < called)
        ++*at;
    for (size_t i = *at; i < load_spans(load) && load->spans[i].begin < end + slack; i++) {
        const struct span *span = &load->spans[i];
        if (!set[span->sm % SMS])
            continue;
        borrowed.before += span->begin < called && span->end + 5 * KERNEL_NS > called;
        if (span->end > called && span->begin < end && span->end > borrowed.last_end)
            borrowed.last_end = span->end;
        if (span->begin < called && span->end > borrowed.ran_to)
            borrowed.ran_to = span->end;
    }
    return borrowed;
}

struct reclaims {
    double took[RECLAIMS], first[RECLAIMS], lost[RECLAIMS];
    double all[RECLAIMS]; /* as took, with those that were disturbed */
    unsigned count, disturbed, not_lent;
};

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void judge(const struct load *owner, const struct load *borrower, double goal,
                  struct reclaims *reclaims)
{
    const uint32_t blocks = owner->spec.blocks;
    size_t at = 0;
    qsort(borrower->spans, load_spans(borrower), sizeof(struct span), by_begin);
    for (uint32_t i = 0; i < owner->page->times; i++) {
        const struct span *spans = &owner->spans[(size_t)i * BURST * blocks];
        uint64_t called = load_device_time(owner, owner->page->time[i]), back = 0, end = 0;
        uint64_t kernel = 0, worked = 0; /* worked: the sum of the kernels' longest blocks */
        uint8_t set[SMS] = {0};
        for (uint32_t b = 0; b < BURST * blocks; b++) {
            if (b < blocks && spans[b].begin > back)
                back = spans[b].begin;
            if (b % blocks == 0)
                kernel = 0;
            if (spans[b].end - spans[b].begin > kernel) {
                worked += spans[b].end - spans[b].begin - kernel;
                kernel = spans[b].end - spans[b].begin;
            }
            end = spans[b].end > end ? spans[b].end : end;
            set[spans[b].sm % SMS] = 1;
        }
        struct borrowed lent = borrowed(borrower, set, called, end, &at);
        double first = ((double)back - (double)called) / 1e6;
        double lost = ((double)end - (double)called - (double)worked) / 1e6;
        if (lent.last_end > back)
            back = lent.last_end;
        double ms = ((double)back - (double)called) / 1e6;
        double running = (double)(lent.ran_to - called) / 1e6;
        if (!lent.before) {
            reclaims->not_lent++;
            continue;
        }
        reclaims->all[reclaims->count + reclaims->disturbed] = ms - running;
        if (!quiet_between(owner->page->time[i], owner->page->time[i] + goal)) {
            reclaims->disturbed++;
        } else {
            reclaims->first[reclaims->count] = first - running;
            reclaims->lost[reclaims->count] = lost - running;
            reclaims->took[reclaims->count++] = ms - running;
        }
    }
}

/* The multiprocessors of 50 %: whole SM groups, and an H100 has 15 of 8 and one of 12. */
static uint32_t half_of(const struct server *server, uint32_t all)
{
    struct gpushare_limits limits = {.size = sizeof limits};
    gpushare_connection *gpu = bench_connect(server, 50);
    BENCH_CHECK(gpushare_limits(gpu, &limits));
    gpushare_close(&gpu);
    if (limits.multiprocessors > all / 2 || limits.multiprocessors < all * 4 / 10)
        bench_die("50 %% are %u of %u multiprocessors", limits.multiprocessors, all);
    return limits.multiprocessors;
}

static void reclaim(struct bench_result *result, const struct borrower *who)
{
    static struct reclaims reclaims;
    const char *soft[] = {who->device, NULL};
    const char *half[] = {"GPUSHARE_THREADS_REQUEST=50%", "GPUSHARE_ACTIVE_THREAD_PERCENTAGE=50",
                          NULL};
    struct server *server = bench_server_soft(soft);
    uint32_t all = bench_multiprocessors(server), own = half_of(server, all);
    struct load_spec spec = {.name = "owner",
                             .env = half,
                             .kernel_ns = KERNEL_NS,
                             .blocks = own,
                             .whole_sm = true,
                             .most = who->reclaims * BURST + 1,
                             .drain = true,
                             .behave = now_and_then};
    struct load_spec other = {.name = "borrower",
                              .kernel_ns = who->kernel_ns,
                              .blocks = all * who->waves,
                              .whole_sm = true,
                              .streams = who->streams,
                              .depth = who->streams,
                              .most = who->most};
    pause_us = who->pause_us;
    wanted = bench_short ? who->reclaims / 20 : who->reclaims;
    struct load *owner = load_start(server, &spec);
    struct load *borrower = load_start(server, &other);
    if (owner->page->multiprocessors != own)
        bench_die("the owner has %u of %u multiprocessors, not %u", owner->page->multiprocessors,
                  all, own);
    reclaims = (struct reclaims){0};
    load_go(borrower);
    usleep(200000);
    quiet_start();
    load_go(owner);
    load_finish(owner);
    quiet_stop();
    load_stop(borrower);
    judge(owner, borrower, who->goal, &reclaims);
    if (reclaims.count < owner->page->times / 4 || !reclaims.count)
        bench_die("of %u reclaims %u were disturbed by a busy machine, and in %u nothing was lent",
                  owner->page->times, reclaims.disturbed, reclaims.not_lent);
    if (reclaims.not_lent * 4 > owner->page->times && !bench_short)
        bench_doubt(result, "in %u of %u bursts nothing was lent", reclaims.not_lent,
                    owner->page->times);
    quiet_judge_dropped(result, reclaims.disturbed, reclaims.count + reclaims.disturbed);
    result->value = span_percentile(reclaims.took, reclaims.count, 99);
    snprintf(
        result->note, sizeof result->note,
        "p99 of %u, median %.2f, most %.2f; the owner's first kernel began after %.2f and %.2f, "
        "and a burst lost %.2f and %.2f (median, p99); %u dropped, p99 of all %.2f; in %u more "
        "nothing was lent",
        reclaims.count, span_percentile(reclaims.took, reclaims.count, 50),
        reclaims.took[reclaims.count - 1], span_percentile(reclaims.first, reclaims.count, 50),
        span_percentile(reclaims.first, reclaims.count, 99),
        span_percentile(reclaims.lost, reclaims.count, 50),
        span_percentile(reclaims.lost, reclaims.count, 99), reclaims.disturbed,
        span_percentile(reclaims.all, reclaims.count + reclaims.disturbed, 99), reclaims.not_lent);
    load_free(owner);
    load_free(borrower);
    bench_server_stop(server);
}

void bench_reclaim(struct bench_result *result)
{
    reclaim(result, &one_wave);
}

void bench_reclaim_ten_waves(struct bench_result *result)
{
    reclaim(result, &ten_waves);
}
