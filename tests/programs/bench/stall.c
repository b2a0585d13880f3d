/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A client keeps kernels of 1 ms in its queue, one after another, while ten others a second come
 * and go (arrivals.h). A stall is the time from the end of one of its kernels to the begin of the
 * next, as the kernels wrote them.
 *
 * stall_by_arrivals_ms_p99: for each arrival the longest stall from when it came until it was gone;
 * the 99th percentile of these.
 *
 * windows_share: the time that the server says it kept the device idle for calls that wait for it,
 * as a part of the time. The note has the client's stalls together, whatever their reason.
 *
 * stall_by_endless_ms: the client is on half of the multiprocessors. Another has a quarter, and a
 * kernel there that ends after all that is measured. Arrivals that wait for longer than a second
 * are killed. Both have limits in a first run, and requests in a second one; the worst stall of
 * both.
 *
 * Time in which the machine did not run an idle thread (quiet.h) is noise, which is taken off a
 * stall: to drop stalls with noise would drop the long ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/arrivals.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"
#include "tests/programs/bench/quiet.h"

enum { KERNEL_NS = 1000000, LAUNCHES_MAX = 1 << 17, WARM_UP_US = 300000 };

static unsigned seconds(void)
{
    return bench_short ? 1 : 30;
}

struct stalls {
    double all, worst; /* milliseconds, without noise */
    double noise;      /* milliseconds */
    unsigned kernels;
};

static void count_stall(struct stalls *stalls, double when, double ms)
{
    double noise = quiet_noise(when, when + ms / 1e3) * 1e3;
    stalls->all += ms - noise;
    stalls->noise += noise;
    stalls->worst = ms - noise > stalls->worst ? ms - noise : stalls->worst;
}

/* The client's stalls between two times, of which only what lies between them counts. A client that
 * runs nothing at all stalls all the time. */
static struct stalls stalls_between(const struct load *load, double from, double to)
{
    struct stalls stalls = {0};
    const uint64_t first = load_device_time(load, from), last = load_device_time(load, to);
    uint64_t idle_since = first;
    for (size_t i = 0; i < load_spans(load) && load->spans[i].begin < last; i++) {
        const struct span *span = &load->spans[i];
        if (span->end < first)
            continue;
        if (span->begin > idle_since)
            count_stall(&stalls, from + (double)(idle_since - first) / 1e9,
                        (double)(span->begin - idle_since) / 1e6);
        idle_since = span->end;
        stalls.kernels++;
    }
    if (idle_since < last)
        count_stall(&stalls, from + (double)(idle_since - first) / 1e9,
                    (double)(last - idle_since) / 1e6);
    return stalls;
}

static struct load *steady_client(const struct server *server, const char *const env[])
{
    struct load_spec spec = {
        .name = "steady", .env = env, .kernel_ns = KERNEL_NS, .most = LAUNCHES_MAX};
    return load_start(server, &spec);
}

/* Has others come and go beside the client. Returns their record, for the caller to free. */
static struct arrivals *beside_arrivals(const struct server *server, struct load *load,
                                        double patience, double *from, double *to)
{
    load_go(load);
    usleep(WARM_UP_US);
    struct arrivals *arrivals = arrivals_start(server, patience);
    quiet_start();
    *from = bench_now();
    bench_sleep_until(*to = *from + seconds());
    arrivals_stop(arrivals);
    usleep(WARM_UP_US);
    quiet_stop();
    load_stop(load);
    return arrivals;
}

static void note_arrivals(struct bench_result *result, const struct arrivals *arrivals,
                          const struct stalls *stalls, double from, double to)
{
    snprintf(
        result->note, sizeof result->note,
        "%u arrivals, %u killed while they waited, %u failed; %u kernels, worst stall %.1f ms, "
        "all stalls %.4f of the time, and %.4f noise",
        arrivals_count(arrivals), arrivals_killed(arrivals), arrivals_failed(arrivals),
        stalls->kernels, stalls->worst, stalls->all / 1e3 / (to - from),
        stalls->noise / 1e3 / (to - from));
}

void bench_stall_by_arrivals(struct bench_result *result)
{
    double from, to;
    struct server *server = bench_server_soft(NULL);
    struct load *load = steady_client(server, NULL);
    struct arrivals *arrivals = beside_arrivals(server, load, 10, &from, &to);
    unsigned count = arrivals_count(arrivals);
    double *worst = calloc(count + 1, sizeof *worst);
    if (!count || !worst)
        bench_die("nobody arrived");
    for (unsigned i = 0; i < count; i++) {
        struct arrival one = arrivals_one(arrivals, i);
        worst[i] = stalls_between(load, one.began, one.ended > 0 ? one.ended : to).worst;
    }
    struct stalls all = stalls_between(load, from, to);
    result->value = span_percentile(worst, count, 99);
    note_arrivals(result, arrivals, &all, from, to);
    free(worst);
    arrivals_free(arrivals);
    load_free(load);
    if (server_stop(server))
        bench_die("the server did not end well");
}

/* The device's seconds in quiet windows so far, and their number. */
static double quiet_seconds(int admin, int64_t *windows)
{
    json_t *answer = administer(admin, "{\"request\":\"status\"}");
    json_t *gpu = json_array_get(json_object_get(answer, "devices"), 0);
    double spent = json_number_value(json_object_get(gpu, "quiet_seconds"));
    if (!gpu)
        bench_die("status has no GPU");
    *windows = json_integer_value(json_object_get(gpu, "quiet_windows"));
    json_decref(answer);
    return spent;
}

void bench_windows_share(struct bench_result *result)
{
    double from, to;
    int64_t before, after;
    struct server *server = bench_server_soft(NULL);
    int admin = administer_open(server);
    struct load *load = steady_client(server, NULL), *stays = steady_client(server, NULL);
    double spent = quiet_seconds(admin, &before);
    struct arrivals *arrivals = beside_arrivals(server, load, 10, &from, &to);
    result->value = (quiet_seconds(admin, &after) - spent) / (to - from);
    struct stalls all = stalls_between(load, from, to);
    note_arrivals(result, arrivals, &all, from, to);
    size_t used = strlen(result->note);
    snprintf(result->note + used, sizeof result->note - used, "; %lld windows",
             (long long)(after - before));
    arrivals_free(arrivals);
    load_stop(stays);
    load_free(stays);
    load_free(load);
    close(admin);
    if (server_stop(server))
        bench_die("the server did not end well");
}

/* One kernel, which ends after all that is measured. */
static void one_kernel(struct load *child)
{
    while (load_resting(child) && !load_stopped(child))
        usleep(1000);
    load_wait(child, load_launch(child, child->spec.kernel_ns));
}

/* How the two clients' parts of the device are theirs. Multiprocessors that are nobody's own are
 * open to those who arrive. */
static const struct parts {
    const char *half[3], *quarter[3];
} parts[] = {{{"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=50"}, {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=25"}},
             {{"GPUSHARE_THREADS_REQUEST=50%", "GPUSHARE_ACTIVE_THREAD_PERCENTAGE=50"},
              {"GPUSHARE_THREADS_REQUEST=25%", "GPUSHARE_ACTIVE_THREAD_PERCENTAGE=25"}}};

static void beside_endless(struct bench_result *result, const struct parts *part)
{
    double from, to;
    struct server *server = bench_server_soft(NULL);
    struct load *load = steady_client(server, part->half);
    struct load_spec spec = {.name = "endless",
                             .env = part->quarter,
                             .kernel_ns = (uint64_t)(seconds() + 2) * 1000000000,
                             .depth = 1,
                             .most = 64, /* finding the clock takes one after another */
                             .behave = one_kernel};
    struct load *endless = load_start(server, &spec);
    load_go(endless);
    usleep(WARM_UP_US);
    struct arrivals *arrivals = beside_arrivals(server, load, 1, &from, &to);
    struct stalls all = stalls_between(load, from, to);
    if (all.worst >= result->value) {
        result->value = all.worst;
        note_arrivals(result, arrivals, &all, from, to);
    }
    arrivals_free(arrivals);
    load_stop(endless);
    load_free(endless);
    load_free(load);
    if (server_stop(server))
        bench_die("the server did not end well");
}

void bench_stall_by_endless(struct bench_result *result)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        beside_endless(result, &parts[i]);
}
