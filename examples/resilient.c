/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * resilient: a program that computes on when a neighbour's kernel faults. Each step of its
 * computation reads one state and writes the next. If the step is interrupted, the program recovers
 * the stream and takes the step again: what finished work had written is still there, and the step
 * has not touched what it reads. It needs no copy of its state and no new connection.
 *
 * Where a service manager stores the server's descriptors, the server may be killed or replaced
 * meanwhile: the program need do nothing about that, and no step is interrupted.
 *
 * In the end the state is compared with one that the CPU computed.
 *
 * usage: resilient [-n ELEMENTS] [-s STEPS]
 * SIGTERM ends it sooner: it compares the state that it has come to.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "examples/example.h"

INCLUDE_PTX(resilient_ptx, "examples/kernels/resilient.ptx");

static unsigned count = 1 << 12, steps = 2000, interruptions;
static volatile sig_atomic_t enough;

static void stop(int number)
{
    (void)number;
    enough = 1;
}

static void parse(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "n:s:")) != -1) {
        if (option == 'n')
            count = (unsigned)strtoul(optarg, NULL, 10);
        else
            steps = option == 's' ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    }
    if (optind != argc || !count || !steps) {
        fprintf(stderr, "usage: resilient [-n ELEMENTS] [-s STEPS]\n");
        exit(2);
    }
}

/* Makes a call on the default stream. Returns whether it succeeded; false if it was interrupted:
 * the stream can go on then. */
static int survive(gpushare_connection *gpu, gpushare_error error)
{
    if (error == GPUSHARE_ERROR_INTERRUPTED) {
        interruptions++;
        CHECK(gpushare_stream_recover(gpu, NULL, NULL));
        return 0;
    }
    CHECK(error);
    return 1;
}

/* Returns the number of steps taken. */
static unsigned compute(gpushare_connection *gpu, gpushare_function *step,
                        gpushare_address states[2])
{
    struct gpushare_dim grid = {(count + 255) / 256, 1, 1}, block = {256, 1, 1};
    unsigned taken = 0;
    while (taken < steps && !enough) {
        gpushare_address *now = &states[taken % 2], *next = &states[(taken + 1) % 2];
        void *parameters[] = {now, next, &count};
        if (survive(gpu, gpushare_launch(step, grid, block, 0, NULL, parameters)) &&
            survive(gpu, gpushare_synchronize(gpu)) && ++taken % 100 == 0)
            printf("round %u of %u\n", taken / 100, steps / 100);
    }
    return taken;
}

static void compute_on_cpu(unsigned *state, unsigned number)
{
    unsigned *other = malloc(count * sizeof *state);
    if (!other)
        exit(1);
    for (unsigned taken = 0; taken < number; taken++) {
        for (unsigned i = 0; i < count; i++)
            other[i] = state[i] * 1664525u + state[(i + 1) % count] + 1013904223u;
        memcpy(state, other, count * sizeof *state);
    }
    free(other);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTERM, stop);
    size_t bytes = count * sizeof(unsigned);
    unsigned *expected = malloc(bytes), *got = malloc(bytes);
    if (!expected || !got)
        return 1;
    for (unsigned i = 0; i < count; i++)
        expected[i] = i * 2654435761u;

    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *step;
    gpushare_address states[2];
    CHECK(gpushare_connect(NULL, &gpu));
    CHECK(gpushare_module_load(gpu, resilient_ptx, 0, &module));
    CHECK(gpushare_module_function(module, "step", &step));
    for (int i = 0; i < 2; i++)
        CHECK(gpushare_memory_alloc(gpu, bytes, &states[i]));
    while (!survive(gpu, gpushare_copy_to_device(gpu, states[0], expected, bytes)))
        ;
    unsigned taken = compute(gpu, step, states);
    while (!survive(gpu, gpushare_copy_from_device(gpu, got, states[taken % 2], bytes)))
        ;
    gpushare_close(&gpu);

    compute_on_cpu(expected, taken);
    for (unsigned i = 0; i < count; i++)
        if (got[i] != expected[i]) {
            fprintf(stderr, "resilient: element %u is %u, not %u\n", i, got[i], expected[i]);
            return 1;
        }
    printf("resilient: %u steps verified, %u times interrupted\n", taken, interruptions);
    free(got);
    free(expected);
    return 0;
}
