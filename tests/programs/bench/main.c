/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * make bench: runs the rows, prints a table, writes results.json.
 *
 * usage: bench [--short] [--seed N] OUT.json [ROW...]
 *        bench --list
 *
 * --seed repeats what the software GPU and the rows chose at random in another run; without it,
 * $SOFTGPU_SEED does. --list prints the rows as JSON: what each measures, in which unit, beside
 * which yardstick, and its aim.
 *
 * Every row runs, whatever becomes of those before it. The exit status is not 0 if a row is not
 * met; in a short run, if one could not be measured in the scene that it describes.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tests/programs/bench/attempt.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/report.h"
#include "tests/programs/bench/row.h"

/* Of one attempt, in seconds; the longest needs four minutes. */
enum { LIMIT = 600 };

static int list_rows(void)
{
    json_t *list = row_list();
    int result = json_dumpf(list, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(list);
    return result < 0 || fflush(stdout) != 0;
}

static uint64_t default_seed(void)
{
    const char *given = getenv("SOFTGPU_SEED");
    uint32_t drawn = 0;
    if (given)
        return strtoull(given, NULL, 10);
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
        bench_die("no random numbers");
    return drawn;
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (!strcmp(name, argv[i]))
            return true;
    return argc <= 2;
}

struct tally {
    unsigned missed, faulty; /* faulty: not measured, or not in the scene that the row describes */
};

static void run_row(const struct row *row, json_t *list, struct tally *tally)
{
    struct attempt attempt;
    attempt_make(&attempt, row->run, LIMIT);
    report_row(row, &attempt);
    json_array_append_new(list, report_json(row, &attempt));
    tally->missed += !row_met(row, &attempt.result);
    tally->faulty += attempt.result.fault[0] != 0;
}

int main(int argc, char **argv)
{
    bench_seed = default_seed();
    if (argc > 1 && !strcmp(argv[1], "--short")) {
        bench_short = true;
        argc--;
        argv++;
    }
    if (argc > 2 && !strcmp(argv[1], "--seed")) {
        bench_seed = strtoull(argv[2], NULL, 10);
        argc -= 2;
        argv += 2;
    }
    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list_rows();
    if (argc < 2) {
        fprintf(stderr, "usage: bench [--short] [--seed N] OUT.json [ROW...] | --list\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        if (!row_find(argv[i]))
            bench_die("there is no row '%s'", argv[i]);
    json_t *list = json_array();
    struct tally tally = {0};
    printf("seed %llu\n", (unsigned long long)bench_seed);
    report_head();
    for (const struct row *row = rows; row < rows + row_count; row++) {
        if (!wanted(row->name, argc, argv))
            continue;
        if (row->run == bench_accounting && strcmp(server_driver(), "softgpu"))
            printf("%-38s only on the software GPU\n", row->name);
        else
            run_row(row, list, &tally);
    }
    if (json_dump_file(list, argv[1], JSON_INDENT(2)) < 0)
        bench_die("%s can't be written", argv[1]);
    json_decref(list);
    printf("%u not met; %s\n", tally.missed, argv[1]);
    /* Short rows tell whether they run, not how well. */
    return (bench_short ? tally.faulty : tally.missed) != 0;
}
