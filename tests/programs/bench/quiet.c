/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/quiet.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

#include "tests/programs/bench/bench.h"

enum { MOMENTS = 1 << 16, SLEEP_NS = 1000000 };

static struct {
    pthread_t thread;
    atomic_bool stop;
    struct {
        double from, to;
    } moments[MOMENTS];
    atomic_uint count;
} quiet;

static void *quiet_main(void *context)
{
    (void)context;
    prctl(PR_SET_TIMERSLACK, 1);
    while (!atomic_load(&quiet.stop)) {
        double from = bench_now();
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
        double to = bench_now();
        unsigned n = atomic_load(&quiet.count);
        if (to - from < 2e-9 * SLEEP_NS || n == MOMENTS)
            continue;
        quiet.moments[n].from = from;
        quiet.moments[n].to = to;
        atomic_store(&quiet.count, n + 1);
    }
    return NULL;
}

void quiet_start(void)
{
    atomic_store(&quiet.stop, false);
    atomic_store(&quiet.count, 0);
    if (pthread_create(&quiet.thread, NULL, quiet_main, NULL))
        bench_die("no thread that watches the machine");
}

void quiet_stop(void)
{
    atomic_store(&quiet.stop, true);
    pthread_join(quiet.thread, NULL);
}

bool quiet_between(double from, double to)
{
    /* The numbers of a short run are not judged, so a busy machine must not end it. */
    unsigned n = bench_short ? 0 : atomic_load(&quiet.count);
    for (unsigned i = 0; i < n; i++)
        if (quiet.moments[i].from < to && from < quiet.moments[i].to)
            return false;
    return true;
}

double quiet_noise(double from, double to)
{
    unsigned n = bench_short ? 0 : atomic_load(&quiet.count);
    double noise = 0;
    for (unsigned i = 0; i < n; i++) {
        double begin = quiet.moments[i].from > from ? quiet.moments[i].from : from;
        double end = quiet.moments[i].to < to ? quiet.moments[i].to : to;
        noise += end > begin ? end - begin : 0;
    }
    return noise;
}
