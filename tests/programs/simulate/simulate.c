/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * simulate: a day of 1,000 clients of several users on 64 GPUs, in each mode, with the real
 * policies.
 *
 * Clients come and go, and have bursts of work with pauses between; a third of them pause for
 * moments within a burst, too. Kernels take from 10 us to 300 ms and cannot be stopped.
 *
 * Another client's kernel begins 10 us later than one of the same would, and the server sees each
 * end up to 100 us late. Each mode sees the same clients, GPU by GPU. Per mode it prints, from what
 * the kernels of the simulated devices did:
 *   busy      what the devices ran, of the time that the mode promised to somebody
 *   error     per burst of 50 s (ten plans) or more: what the client had against what
 *             the mode promised it while others came and went, in points of the burst:
 *             median, 99th percentile and most
 *   wait      of a client with work, until its next kernel begins, when that took 1 ms
 *             or more: median, 99th percentile, most, and most of clients with a request (one
 *             without has what others leave, and may wait long)
 *   Jain      Jain's index of had / promised over these bursts; 1 is perfect
 *   pauses    of 1 to 50 ms within bursts: how many there were
 * and writes the table into a folder too, where chart.py draws it. In concurrent mode nothing is
 * promised: its row compares with equal parts. (There the simulated device takes
 * clients' kernels in turns; a real one runs small ones side by side.)
 *
 * A second table is the yardstick: equal parts to all clients with work, as plain time-slicing and
 * equal replicas give, held against the same promises in the same day.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol.h"
#include "tests/programs/simulate/day.h"

static void print_table(FILE *file, const struct day_result *results, double hours, uint32_t gpus)
{
    fprintf(file, "%.0f hours, %u GPUs, %u clients\n\n", hours, gpus,
            DAY_CLIENTS * gpus / DAY_GPUS);
    fprintf(file, "%-11s %6s | %9s %9s %9s | %8s %8s %8s %8s | %6s | %7s %7s\n", "mode", "busy",
            "error p50", "error p99", "most", "wait p50", "p99", "most", "request", "Jain",
            "bursts", "pauses");
    fprintf(file, "%-11s %6s | %9s %9s %9s | %8s %8s %8s %8s |\n", "", "", "points", "points",
            "points", "ms", "ms", "ms", "ms");
    for (int i = 0; i < DAY_MODES; i++) {
        const struct day_result *r = &results[i];
        fprintf(file,
                "%-11s %6.3f | %9.3f %9.3f %9.3f | %8.0f %8.0f %8.0f %8.0f | %6.4f | %7u %7u\n",
                r->mode, r->busy, r->errors.median, r->errors.p99, r->errors.most,
                r->wait_median_ms, r->wait_p99_ms, r->wait_most_ms, r->wait_most_request_ms,
                r->errors.jain, r->stretches, r->pauses);
    }
    fprintf(file, "\nplain time-slicing or equal replicas, against what the mode promises\n\n");
    fprintf(file, "%-11s | %9s %9s %9s | %6s\n", "promise of", "error p50", "error p99", "most",
            "Jain");
    for (int i = PROTO_MODE_STRICT; i <= PROTO_MODE_FAIR; i++) {
        const struct day_errors *e = &results[i].sliced;
        fprintf(file, "%-11s | %9.3f %9.3f %9.3f | %6.4f\n", results[i].mode, e->median, e->p99,
                e->most, e->jain);
    }
}

static int write_file(const char *folder, const struct day_result *results, double hours,
                      uint32_t gpus)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/table.txt", folder) >= (int)sizeof path)
        return -ENAMETOOLONG;
    FILE *file = fopen(path, "w");
    if (!file)
        return -errno;
    print_table(file, results, hours, gpus);
    return fclose(file) ? -errno : 0;
}

int main(int argc, char **argv)
{
    static struct day_result results[DAY_MODES];
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: simulate FOLDER [HOURS [GPUS]]\n");
        return 2;
    }
    double hours = argc > 2 ? strtod(argv[2], NULL) : 24;
    uint32_t gpus = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : DAY_GPUS;
    if (!(hours > 0 && hours <= 24) || gpus < 1 || gpus > DAY_GPUS) {
        fprintf(stderr, "simulate: hours are above 0 and up to 24, GPUs 1 to %d\n", DAY_GPUS);
        return 2;
    }
    for (int mode = 0; mode < DAY_MODES; mode++)
        day_run(mode, (uint64_t)(hours * 3600e9), gpus, &results[mode]);
    print_table(stdout, results, hours, gpus);
    int result = write_file(argv[1], results, hours, gpus);
    if (result)
        fprintf(stderr, "simulate: %s/table.txt: %s\n", argv[1], strerror(-result));
    return result ? 1 : 0;
}
