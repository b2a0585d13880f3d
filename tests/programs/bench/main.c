/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * make bench: runs the rows, prints a table, writes results.json.
 *
 * usage: bench [--short] [--alone | --neighbours] [--seed N] [--scene N] OUT.json [ROW...]
 *        bench --list
 *
 * A row is measured alone and, where the row table names some, beside unkind neighbours (company.h)
 * that are drawn at random. The worse of the two is the row's number. --neighbours leaves out the
 * first, and rows that have no neighbours. --alone leaves out the second, and so does --short,
 * unless --neighbours is given too.
 *
 * --seed repeats what the software GPU and the rows chose at random in another run, the neighbours
 * too; without it, $SOFTGPU_SEED does. --scene plays this one alone of the many scenes of a row,
 * whose worst one the row names. --list prints the rows as JSON: what each measures, in which unit,
 * beside which yardstick, and its aim.
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
#include "tests/programs/bench/company.h"
#include "tests/programs/bench/report.h"
#include "tests/programs/bench/row.h"

/* Of one attempt, in seconds; the longest needs five minutes. */
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

/* The scenes of a row that are measured. */
static enum { BOTH, ALONE, BESIDE } scenes_wanted;

struct tally {
    unsigned missed, faulty; /* faulty: not measured, or not in the scene that the row describes */
};

static void measure(const struct row *row, unsigned neighbours, struct report_scene *scene)
{
    company_names(neighbours, scene->neighbours, sizeof scene->neighbours);
    company_expect(neighbours);
    attempt_make(&scene->attempt, row->run, LIMIT);
    report_scene(row, scene);
}

/* A row is judged by the worse of its scenes. */
static void run_row(const struct row *row, json_t *list, struct tally *tally)
{
    static struct report_scene scenes[2];
    unsigned neighbours = company_draw(row->neighbours, bench_seed + (uint64_t)(row - rows));
    size_t count = 0, worse = 0;
    if (scenes_wanted != BESIDE)
        measure(row, 0, &scenes[count++]);
    if (scenes_wanted != ALONE && neighbours)
        measure(row, neighbours, &scenes[count++]);
    if (!count)
        return;
    if (count == 2)
        worse = row_worse(row, &scenes[1].attempt.result, &scenes[0].attempt.result);
    json_array_append_new(list, report_json(row, &scenes[worse], scenes, count));
    tally->missed += !row_met(row, &scenes[worse].attempt.result);
    for (size_t i = 0; i < count; i++)
        if (scenes[i].attempt.result.fault[0]) {
            tally->faulty++;
            break;
        }
}

int main(int argc, char **argv)
{
    bench_seed = default_seed();
    if (argc > 1 && !strcmp(argv[1], "--short")) {
        bench_short = true;
        scenes_wanted = ALONE;
        argc--;
        argv++;
    }
    if (argc > 1 && (!strcmp(argv[1], "--alone") || !strcmp(argv[1], "--neighbours"))) {
        scenes_wanted = !strcmp(argv[1], "--alone") ? ALONE : BESIDE;
        argc--;
        argv++;
    }
    if (argc > 2 && !strcmp(argv[1], "--seed")) {
        bench_seed = strtoull(argv[2], NULL, 10);
        argc -= 2;
        argv += 2;
    }
    if (argc > 2 && !strcmp(argv[1], "--scene")) {
        bench_scene = atoi(argv[2]);
        argc -= 2;
        argv += 2;
    }
    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list_rows();
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr,
                "usage: bench [--short] [--alone | --neighbours] [--seed N] [--scene N] OUT.json "
                "[ROW...] | --list\n");
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
