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
 * windows_share: the part of the time in which no kernel of two such clients ran while others
 * arrived, less the same part before anybody did.
 *
 * The server's own figure is the time in which a
 * window held clients back. While one of them is held back, the other may run to its end still, so
 * that figure is compared with what each client lost, the mean of both; it is in the note, and is
 * not allowed to be further off than a fifth.
 *
 * stall_by_endless_ms: the client is on half of the multiprocessors. Another has a quarter, and a
 * kernel there that begins before all that is measured and ends after it. Arrivals that wait for
 * longer than a second are killed, and some have to be. Both have limits in a first run, and
 * requests in a second one; the worst stall of both.
 *
 * Time that other programs took of the machine (quiet.h) is noise, which is taken off a stall: to
 * drop stalls with noise would drop the long ones. The note has the value with noise too.
 *
 * A row is not met, whatever its value, if others had a tenth of the CPUs, if a call of an arrival
 * failed, or if fewer than four fifths of ten a second arrived. Nor are the first two rows if an
 * arrival waited for longer than ten seconds: a server that serves nobody else stalls nobody.
 *
 * No more neighbours: those that come and go are the scene.
 */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/arrivals.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"
#include "tests/programs/bench/quiet.h"

enum { KERNEL_NS = 1000000, LAUNCHES_MAX = 1 << 18, WARM_UP_US = 300000, PATIENCE_S = 10 };

/* Lengths vary by a third, so a kernel may be that much shorter than it says. */
#define NOMINAL_TO_SHORTEST 1.6

static unsigned seconds(void)
{
    return bench_short ? 1 : 30;
}

struct stalls {
    double all, worst;  /* milliseconds, without noise */
    double noise;       /* milliseconds */
    double worst_noisy; /* milliseconds, with noise */
    unsigned kernels;
};

static void count_stall(struct stalls *stalls, double when, double ms)
{
    double noise = quiet_noise(when, when + ms / 1e3) * 1e3;
    stalls->all += ms - noise;
    stalls->noise += noise;
    stalls->worst = ms - noise > stalls->worst ? ms - noise : stalls->worst;
    stalls->worst_noisy = ms > stalls->worst_noisy ? ms : stalls->worst_noisy;
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
static struct arrivals *beside_arrivals(struct bench_result *result, const struct server *server,
                                        struct load *load, double patience, double *from,
                                        double *to)
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
    quiet_judge(result, *from, *to);
    arrivals_judge(result, arrivals, *from, *to);
    return arrivals;
}

static void doubt_waits(struct bench_result *result, const struct arrivals *arrivals)
{
    if (arrivals_killed(arrivals))
        bench_doubt(result, "%u of %u arrivals waited for longer than %d s",
                    arrivals_killed(arrivals), arrivals_count(arrivals), PATIENCE_S);
}

static void note_arrivals(struct bench_result *result, const struct arrivals *arrivals,
                          const struct stalls *stalls, double from, double to)
{
    snprintf(result->note, sizeof result->note,
             "%u arrivals, %u killed while they waited; %u kernels, worst stall %.1f ms (%.1f with "
             "noise), all stalls %.4f of the time, and %.4f noise; others had %.3f of the CPUs",
             arrivals_count(arrivals), arrivals_killed(arrivals), stalls->kernels, stalls->worst,
             stalls->worst_noisy, stalls->all / 1e3 / (to - from),
             stalls->noise / 1e3 / (to - from), quiet_others(from, to));
}

__attribute__((format(printf, 2, 3))) static void append_note(struct bench_result *result,
                                                              const char *format, ...)
{
    size_t used = strlen(result->note);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->note + used, sizeof result->note - used, format, arguments);
    va_end(arguments);
}

void bench_stall_by_arrivals(struct bench_result *result)
{
    double from, to;
    struct server *server = bench_server_soft(NULL);
    struct load *load = steady_client(server, NULL);
    struct arrivals *arrivals = beside_arrivals(result, server, load, PATIENCE_S, &from, &to);
    doubt_waits(result, arrivals);
    unsigned count = arrivals_count(arrivals);
    double *worst = calloc(count, sizeof *worst), *noisy = calloc(count, sizeof *noisy);
    if (!worst || !noisy)
        bench_die("out of memory");
    for (unsigned i = 0; i < count; i++) {
        struct arrival one = arrivals_one(arrivals, i);
        struct stalls of = stalls_between(load, one.began, one.ended > 0 ? one.ended : to);
        worst[i] = of.worst;
        noisy[i] = of.worst_noisy;
    }
    struct stalls all = stalls_between(load, from, to);
    result->value = span_percentile(worst, count, 99);
    note_arrivals(result, arrivals, &all, from, to);
    append_note(result, "; %.1f ms with noise", span_percentile(noisy, count, 99));
    free(worst);
    free(noisy);
    arrivals_free(arrivals);
    load_free(load);
    bench_server_stop(server);
}

/* The server's counts of quiet windows. */
struct windows {
    double seconds;
    int64_t count;
};

static struct windows ask_for_windows(int admin)
{
    json_t *answer = administer(admin, "{\"request\":\"status\"}");
    json_t *gpu = json_array_get(json_object_get(answer, "devices"), 0);
    json_t *seconds = json_object_get(gpu, "quiet_seconds");
    json_t *count = json_object_get(gpu, "quiet_windows");
    if (!json_is_number(seconds) || !json_is_integer(count))
        bench_die("status does not say how long windows took");
    struct windows windows = {json_number_value(seconds), json_integer_value(count)};
    json_decref(answer);
    return windows;
}

/* Whether two parts of the time are further apart than a fifth of the larger. Time lost to other
 * things than windows comes to a two hundredth at most. */
static bool differ(double one, double other)
{
    double apart = fabs(one - other);
    return apart > fmax(one, other) / 5 && apart > 0.005;
}

static double idle_part(struct load *const clients[2], double from, double to)
{
    return 1 - load_any(clients, 2, load_device_time(clients[0], from),
                        load_device_time(clients[0], to));
}

/* The same of each client by itself, the mean of both. */
static double idle_mean(struct load *const clients[2], double from, double to)
{
    double sum = 0;
    for (int i = 0; i < 2; i++)
        sum += 1 - load_any(&clients[i], 1, load_device_time(clients[i], from),
                            load_device_time(clients[i], to));
    return sum / 2;
}

void bench_windows_share(struct bench_result *result)
{
    double from, to;
    struct server *server = bench_server_soft(NULL);
    int admin = administer_open(server);
    struct load *clients[2] = {steady_client(server, NULL), steady_client(server, NULL)};
    load_go(clients[0]);
    load_go(clients[1]);
    usleep(WARM_UP_US);
    const double alone = bench_now();
    bench_sleep_until(alone + seconds());
    struct windows before = ask_for_windows(admin);
    struct arrivals *arrivals = beside_arrivals(result, server, clients[0], PATIENCE_S, &from, &to);
    doubt_waits(result, arrivals);
    struct windows after = ask_for_windows(admin);
    load_stop(clients[1]);
    struct stalls all = stalls_between(clients[0], from, to);
    double without = idle_part(clients, alone, alone + seconds());
    double with = idle_part(clients, from, to);
    double each = idle_mean(clients, from, to) - idle_mean(clients, alone, alone + seconds());
    double said = (after.seconds - before.seconds) / (to - from);
    /* Time in which neither runs would be blind to one client that is held back beside the other.
     */
    result->value = with - without > each ? with - without : each;
    if (differ(each, said) && !bench_short)
        bench_doubt(result, "the kernels say %.4f of a client's time, the server says %.4f", each,
                    said);
    note_arrivals(result, arrivals, &all, from, to);
    append_note(
        result,
        "; idle %.4f of the time, %.4f without arrivals; a client lost %.4f, the server says %.4f, "
        "%lld windows",
        with, without, each, said, (long long)(after.count - before.count));
    if (after.count == before.count)
        bench_doubt(result, "there was no window");
    arrivals_free(arrivals);
    load_free(clients[0]);
    load_free(clients[1]);
    close(admin);
    bench_server_stop(server);
}

/* One kernel, which ends after all that is measured. */
static void one_kernel(struct load *child)
{
    while (load_resting(child))
        usleep(1000);
    load_launch(child, child->spec.kernel_ns);
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
    const double spare = bench_short ? 1.5 : 2; /* WARM_UP_US, and what a busy CPU takes */
    struct server *server = bench_server_soft(NULL);
    struct load *load = steady_client(server, part->half);
    struct load_spec spec = {.name = "endless",
                             .env = part->quarter,
                             .kernel_ns =
                                 (uint64_t)((seconds() + spare) * NOMINAL_TO_SHORTEST * 1e9),
                             .depth = 1,
                             .drain = true,
                             .most = 64, /* finding the clock takes one after another */
                             .behave = one_kernel};
    struct load *endless = load_start(server, &spec);
    load_go(endless);
    usleep(WARM_UP_US);
    struct arrivals *arrivals =
        beside_arrivals(result, server, load, bench_short ? 0.3 : 1, &from, &to);
    load_finish(endless);
    const struct span *kernel = &endless->spans[0];
    if (load_spans(endless) != 1 || kernel->begin > load_device_time(endless, from) ||
        kernel->end < load_device_time(endless, to))
        bench_die("the endless kernel did not run all the time");
    if (!arrivals_killed(arrivals))
        bench_doubt(result, "nobody had to wait beside the endless kernel");
    struct stalls all = stalls_between(load, from, to);
    if (all.worst >= result->value) {
        result->value = all.worst;
        note_arrivals(result, arrivals, &all, from, to);
    }
    arrivals_free(arrivals);
    load_free(endless);
    load_free(load);
    bench_server_stop(server);
}

void bench_stall_by_endless(struct bench_result *result)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        beside_endless(result, &parts[i]);
}
