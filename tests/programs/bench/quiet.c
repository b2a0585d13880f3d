/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/quiet.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/bench/cpu_use.h"

enum { MOMENTS = 1 << 16, SECONDS = 1 << 12, SLEEP_NS = 1000000 };

/* The use of each process is known in ticks of 10 ms, so less in a second may be an error. */
#define OTHERS_SEEN 0.05
/* Beside more a row is measured in vain. */
#define OTHERS_MAX 0.1

struct stretch {
    double from, to;
};

static struct {
    pthread_t thread;
    atomic_bool stop;
    struct stretch moments[MOMENTS];
    unsigned moment_count;
    struct stretch seconds[SECONDS];
    double others[SECONDS]; /* their part of the CPUs, 0 to 1 */
    unsigned second_count;
} quiet;

struct sample {
    double when, all, below;
};

static struct sample sample_use(void)
{
    return (struct sample){bench_now(), cpu_use_all(), cpu_use_below(getpid())};
}

static void note_second(struct sample before, struct sample after, unsigned cpus)
{
    unsigned n = quiet.second_count;
    double wall = after.when - before.when;
    double others = (after.all - before.all - (after.below - before.below)) / (wall * cpus);
    if (n == SECONDS)
        return;
    quiet.seconds[n] = (struct stretch){before.when, after.when};
    quiet.others[n] = others < OTHERS_SEEN ? 0 : others > 1 ? 1 : others;
    quiet.second_count++;
}

static void *quiet_main(void *context)
{
    const unsigned cpus = cpu_use_cpus();
    struct sample before = sample_use();
    (void)context;
    prctl(PR_SET_TIMERSLACK, 1);
    /* A second is whole before the thread ends: of less, the kernel's ticks say little. */
    for (bool stop = false; !stop;) {
        double from = bench_now();
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
        double to = bench_now();
        if (to - from >= 2e-9 * SLEEP_NS && quiet.moment_count < MOMENTS)
            quiet.moments[quiet.moment_count++] = (struct stretch){from, to};
        if (to < before.when + 1)
            continue;
        stop = atomic_load(&quiet.stop);
        struct sample after = sample_use();
        note_second(before, after, cpus);
        before = after;
    }
    return NULL;
}

void quiet_start(void)
{
    atomic_store(&quiet.stop, false);
    quiet.moment_count = quiet.second_count = 0;
    if (pthread_create(&quiet.thread, NULL, quiet_main, NULL))
        bench_die("no thread that watches the machine");
}

void quiet_stop(void)
{
    atomic_store(&quiet.stop, true);
    pthread_join(quiet.thread, NULL);
}

static double overlap(struct stretch one, double from, double to)
{
    double begin = one.from > from ? one.from : from, end = one.to < to ? one.to : to;
    return end > begin ? end - begin : 0;
}

/* The seconds of CPU time that others took between these times, on one CPU's scale. */
static double taken(double from, double to)
{
    double seconds = 0;
    for (unsigned i = 0; i < quiet.second_count; i++)
        seconds += overlap(quiet.seconds[i], from, to) * quiet.others[i];
    return seconds;
}

double quiet_noise(double from, double to)
{
    double noise = 0;
    for (unsigned i = 0; i < quiet.moment_count && !bench_short; i++)
        if (overlap(quiet.moments[i], from, to) > 0)
            noise += taken(quiet.moments[i].from > from ? quiet.moments[i].from : from,
                           quiet.moments[i].to < to ? quiet.moments[i].to : to);
    return noise;
}

bool quiet_between(double from, double to)
{
    return !(quiet_noise(from, to) > 0);
}

double quiet_others(double from, double to)
{
    return bench_short ? 0 : taken(from, to) / (to - from);
}

void quiet_judge(struct bench_result *result, double from, double to)
{
    double others = quiet_others(from, to);
    if (others > OTHERS_MAX)
        bench_doubt(result,
                    "the machine is too busy: other programs had %.0f %% of the CPUs, %.0f %% at "
                    "most",
                    100 * others, 100 * OTHERS_MAX);
}

void quiet_judge_dropped(struct bench_result *result, unsigned dropped, unsigned all)
{
    if (dropped == all)
        bench_die("the machine is too busy: each of %u rounds was disturbed", all);
    if (dropped > all * OTHERS_MAX)
        bench_doubt(result, "the machine is too busy: %u of %u rounds were disturbed", dropped,
                    all);
}
