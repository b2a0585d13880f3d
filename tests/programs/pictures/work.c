/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * work: a client whose kernels take a modelled time, for traces of known contents. As for any
 * client, the environment says which server it uses and with which limits.
 *
 *   work KERNEL_US SECONDS [--busy MS --idle MS] [--after MS] [--in-flight N] [--streams N]
 *        [--memory MIB]
 *
 * It prints "ready" once it is connected and its kernel is loaded, and waits for a line. Then it
 * works: with --after it begins later, with --busy and --idle it works and pauses in turns. Where
 * its work is interrupted it recovers the streams and works on. With --memory it has that much
 * device memory all the time. At the end it prints its number of
 * launches, and keeps its connection until its input ends.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/gpushare.h"

__asm__(".section .rodata\n.balign 16\nwork_ptx:\n.incbin "
        "\"tests/programs/pictures/kernels/work.ptx\"\n.byte 0\n.previous\n");
extern const char work_ptx[];

/* Each block that sleeps costs the software GPU a little of the processor. */
enum { STREAMS_MAX = 16, IN_FLIGHT_MAX = 64, GRID = 16, MEMORY_MIB_MAX = 1 << 20 };

struct options {
    uint64_t kernel_ns, total_ns, busy_ns, idle_ns, after_ns;
    uint64_t memory; /* bytes */
    unsigned in_flight, streams;
};

static void check(gpushare_error error, const char *what)
{
    if (error == GPUSHARE_SUCCESS)
        return;
    fprintf(stderr, "work: %s: %s: %s\n", what, gpushare_error_name(error), gpushare_error_text());
    exit(1);
}
#define CHECK(call) check((call), #call)

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sleep_until(uint64_t when)
{
    struct timespec time = {.tv_sec = (time_t)(when / 1000000000u),
                            .tv_nsec = (long)(when % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0)
        ;
}

static int usage(void)
{
    fputs("usage: work KERNEL_US SECONDS [--busy MS --idle MS] [--after MS] [--in-flight N] "
          "[--streams N] [--memory MIB]\n",
          stderr);
    return 2;
}

static int read_options(struct options *options, int argc, char **argv)
{
    if (argc < 3 || argc % 2 == 0)
        return -1;
    *options = (struct options){.kernel_ns = strtoull(argv[1], NULL, 10) * 1000,
                                .total_ns = (uint64_t)(strtod(argv[2], NULL) * 1e9),
                                .in_flight = 2,
                                .streams = 1};
    for (int i = 3; i < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--busy"))
            options->busy_ns = value * 1000000;
        else if (!strcmp(argv[i], "--idle"))
            options->idle_ns = value * 1000000;
        else if (!strcmp(argv[i], "--after"))
            options->after_ns = value * 1000000;
        else if (!strcmp(argv[i], "--in-flight") && value >= 1 && value <= IN_FLIGHT_MAX)
            options->in_flight = (unsigned)value;
        else if (!strcmp(argv[i], "--streams") && value >= 1 && value <= STREAMS_MAX)
            options->streams = (unsigned)value;
        else if (!strcmp(argv[i], "--memory") && value >= 1 && value <= MEMORY_MIB_MAX)
            options->memory = value << 20;
        else
            return -1;
    }
    return options->kernel_ns && options->total_ns ? 0 : -1;
}

struct lane {
    gpushare_stream *stream;
    gpushare_event *events[IN_FLIGHT_MAX]; /* recorded after the launches, used in turn */
    unsigned long launched, recorded;      /* launches; and those since the last recovery */
};

static gpushare_error launch(struct lane *lane, gpushare_function *function,
                             const struct options *options, unsigned grid)
{
    gpushare_event *event = lane->events[lane->recorded % options->in_flight];
    uint64_t ns = options->kernel_ns;
    struct gpushare_dim blocks = {grid, 1, 1}, threads = {32, 1, 1};
    void *parameters[] = {&ns};
    gpushare_error error = GPUSHARE_SUCCESS;
    if (lane->recorded >= options->in_flight)
        error = gpushare_event_synchronize(event);
    if (!error)
        error = gpushare_launch(function, blocks, threads, 0, lane->stream, parameters);
    if (error)
        return error;
    lane->launched++;
    error = gpushare_event_record(event, lane->stream);
    lane->recorded += !error;
    return error;
}

/* Lets all streams go on where the call was interrupted, and returns whether it was. */
static bool recover(gpushare_error error, const char *what, gpushare_connection *gpu,
                    struct lane *lanes, const struct options *options)
{
    if (error != GPUSHARE_ERROR_INTERRUPTED) {
        check(error, what);
        return false;
    }
    for (unsigned i = 0; i < options->streams; i++) {
        CHECK(gpushare_stream_recover(gpu, lanes[i].stream, NULL));
        lanes[i].recorded = 0; /* the events of before stand for lost work */
    }
    return true;
}

static unsigned long work(gpushare_connection *gpu, struct lane *lanes, gpushare_function *function,
                          const struct options *options)
{
    struct gpushare_limits limits = {.size = sizeof limits};
    uint64_t start = now() + options->after_ns;
    unsigned long launched = 0;
    CHECK(gpushare_limits(gpu, &limits));
    unsigned grid = limits.multiprocessors < GRID ? limits.multiprocessors : GRID;
    sleep_until(start);
    while (now() - start < options->total_ns) {
        uint64_t period = options->busy_ns + options->idle_ns;
        uint64_t into = options->idle_ns ? (now() - start) % period : 0;
        if (options->idle_ns && into >= options->busy_ns) {
            sleep_until(now() + period - into);
            continue;
        }
        for (unsigned i = 0; i < options->streams; i++)
            recover(launch(&lanes[i], function, options, grid), "launch", gpu, lanes, options);
    }
    while (recover(gpushare_synchronize(gpu), "synchronize", gpu, lanes, options))
        ;
    for (unsigned i = 0; i < options->streams; i++)
        launched += lanes[i].launched;
    return launched;
}

int main(int argc, char **argv)
{
    struct options options;
    static struct lane lanes[STREAMS_MAX];
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *function;
    struct gpushare_options wish = {.size = sizeof wish};
    if (read_options(&options, argc, argv) < 0)
        return usage();
    CHECK(gpushare_connect(&wish, &gpu));
    CHECK(gpushare_module_load(gpu, work_ptx, strlen(work_ptx), &module));
    CHECK(gpushare_module_function(module, "take", &function));
    for (unsigned i = 0; i < options.streams; i++) {
        CHECK(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &lanes[i].stream));
        for (unsigned k = 0; k < options.in_flight; k++)
            CHECK(gpushare_event_create(gpu, 0, &lanes[i].events[k]));
    }
    gpushare_address memory; /* is given back at the connection's end */
    if (options.memory)
        CHECK(gpushare_memory_alloc(gpu, options.memory, &memory));
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    printf("%lu\n", work(gpu, lanes, function, &options));
    fflush(stdout);
    while (getchar() != EOF)
        ;
    gpushare_close(&gpu);
    return 0;
}
