/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * kmeans: groups the rows of a table around k centres (Lloyd's algorithm) and
 * prints the centres.
 *
 * usage: kmeans [-k GROUPS] [-r ROUNDS] FILE.csv
 *
 * FILE.csv holds numbers, with or without a header line. The first centres are rows
 * spread evenly over the file. Distances and sums are the same to the last bit on
 * the device and in the reference: see examples/kernels/kmeans.cu.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "examples/example.h"
#include "examples/support/csv.h"

INCLUDE_PTX(kmeans_ptx, "examples/kernels/kmeans.ptx");

enum { STEPS_MAX = 300 };
#define SCALE 1048576.0

static struct csv table;
static unsigned k = 3;

static void first_centres(double *centres)
{
    for (unsigned c = 0; c < k; c++)
        memcpy(&centres[(size_t)c * table.columns],
               &table.values[(size_t)(c * (table.rows - 1) / (k > 1 ? k - 1 : 1)) * table.columns],
               table.columns * sizeof *centres);
}

/* New centres from fixed-point sums; a centre without rows stays where it is. */
static void move_centres(double *centres, const long long *sums, const unsigned *members)
{
    for (unsigned c = 0; c < k; c++)
        for (unsigned j = 0; members[c] && j < table.columns; j++)
            centres[(size_t)c * table.columns + j] =
                (double)sums[(size_t)c * table.columns + j] / SCALE / members[c];
}

static unsigned nearest(const double *row, const double *centres)
{
    unsigned best = 0;
    double best_distance = 0;
    for (unsigned c = 0; c < k; c++) {
        double distance = 0;
        for (unsigned j = 0; j < table.columns; j++) {
            double d = row[j] - centres[(size_t)c * table.columns + j];
            double square = d * d;
            distance += square;
        }
        if (c == 0 || distance < best_distance) {
            best = c;
            best_distance = distance;
        }
    }
    return best;
}

static unsigned reference(double *centres, unsigned *labels)
{
    size_t cells = (size_t)k * table.columns;
    long long *sums = malloc(cells * sizeof *sums);
    unsigned *members = malloc(k * sizeof *members), steps = 0, changed = 1;
    if (!sums || !members)
        exit(1);
    memset(labels, 0xff, table.rows * sizeof *labels);
    first_centres(centres);
    for (; changed && steps < STEPS_MAX; steps++) {
        memset(sums, 0, cells * sizeof *sums);
        memset(members, 0, k * sizeof *members);
        changed = 0;
        for (unsigned i = 0; i < table.rows; i++) {
            const double *row = &table.values[(size_t)i * table.columns];
            unsigned best = nearest(row, centres);
            changed += labels[i] != best;
            labels[i] = best;
            members[best]++;
            for (unsigned j = 0; j < table.columns; j++)
                sums[(size_t)best * table.columns + j] += llrint(row[j] * SCALE);
        }
        move_centres(centres, sums, members);
    }
    free(sums);
    free(members);
    return steps;
}

struct device {
    gpushare_connection *gpu;
    gpushare_function *assign, *sum;
    gpushare_address points, centres, labels, sums, members, changed;
};

static void open_device(struct device *d)
{
    gpushare_module *module;
    size_t cells = (size_t)k * table.columns,
           points = (size_t)table.rows * table.columns * sizeof(double);
    CHECK(gpushare_connect(NULL, &d->gpu));
    CHECK(gpushare_module_load(d->gpu, kmeans_ptx, 0, &module));
    CHECK(gpushare_module_function(module, "kmeans_assign", &d->assign));
    CHECK(gpushare_module_function(module, "kmeans_sum", &d->sum));
    CHECK(gpushare_memory_alloc(d->gpu, points, &d->points));
    CHECK(gpushare_memory_alloc(d->gpu, cells * sizeof(double), &d->centres));
    CHECK(gpushare_memory_alloc(d->gpu, table.rows * sizeof(unsigned), &d->labels));
    CHECK(gpushare_memory_alloc(d->gpu, cells * sizeof(long long), &d->sums));
    CHECK(gpushare_memory_alloc(d->gpu, k * sizeof(unsigned), &d->members));
    CHECK(gpushare_memory_alloc(d->gpu, sizeof(unsigned), &d->changed));
    CHECK(gpushare_copy_to_device(d->gpu, d->points, table.values, points));
}

static unsigned run(struct device *d, double *centres, unsigned *labels)
{
    size_t cells = (size_t)k * table.columns;
    long long *sums = malloc(cells * sizeof *sums);
    unsigned *members = malloc(k * sizeof *members), steps = 0, changed = 1;
    if (!sums || !members)
        exit(1);
    struct gpushare_dim grid = {(table.rows + 127) / 128, 1, 1}, block = {128, 1, 1};
    void *assign[] = {&d->points, &table.rows, &table.columns, &d->centres,
                      &k,         &d->labels,  &d->changed};
    void *sum[] = {&d->points, &table.rows, &table.columns, &d->labels, &d->sums, &d->members};
    first_centres(centres);
    CHECK(gpushare_fill(d->gpu, d->labels, 0xffffffffu, 4, table.rows));
    for (; changed && steps < STEPS_MAX; steps++) {
        CHECK(gpushare_copy_to_device(d->gpu, d->centres, centres, cells * sizeof *centres));
        CHECK(gpushare_fill(d->gpu, d->changed, 0, 4, 1));
        CHECK(gpushare_fill(d->gpu, d->sums, 0, 4, cells * 2));
        CHECK(gpushare_fill(d->gpu, d->members, 0, 4, k));
        CHECK(gpushare_launch(d->assign, grid, block, 0, NULL, assign));
        CHECK(gpushare_launch(d->sum, grid, block, 0, NULL, sum));
        CHECK(gpushare_copy_from_device(d->gpu, &changed, d->changed, sizeof changed));
        CHECK(gpushare_copy_from_device(d->gpu, sums, d->sums, cells * sizeof *sums));
        CHECK(gpushare_copy_from_device(d->gpu, members, d->members, k * sizeof *members));
        move_centres(centres, sums, members);
    }
    CHECK(gpushare_copy_from_device(d->gpu, labels, d->labels, table.rows * sizeof *labels));
    free(sums);
    free(members);
    return steps;
}

int main(int argc, char **argv)
{
    unsigned rounds = 1;
    int option;
    while ((option = getopt(argc, argv, "k:r:")) != -1) {
        if (option == 'k')
            k = (unsigned)strtoul(optarg, NULL, 10);
        else
            rounds = option == 'r' ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    }
    if (optind + 1 != argc || !k || !rounds) {
        fprintf(stderr, "usage: kmeans [-k GROUPS] [-r ROUNDS] FILE.csv\n");
        return 2;
    }
    if (csv_read(argv[optind], &table) < 0)
        return 1;
    if (k > table.rows) {
        fprintf(stderr, "kmeans: %u groups of %u rows: take -k %u at most\n", k, table.rows,
                table.rows);
        return 2;
    }
    size_t cells = (size_t)k * table.columns;
    double *centres = malloc(cells * sizeof *centres), *expected = malloc(cells * sizeof *expected);
    unsigned *labels = malloc(table.rows * sizeof *labels),
             *expected_labels = malloc(table.rows * sizeof *labels);
    if (!centres || !expected || !labels || !expected_labels)
        return 1;
    unsigned expected_steps = reference(expected, expected_labels), steps = 0;

    struct device device;
    open_device(&device);
    for (unsigned round = 0; round < rounds; round++) {
        steps = run(&device, centres, labels);
        if (steps != expected_steps ||
            memcmp(labels, expected_labels, table.rows * sizeof *labels) ||
            memcmp(centres, expected, cells * sizeof *centres)) {
            fprintf(stderr, "kmeans: the device's grouping differs from the reference\n");
            return 1;
        }
        printf("round %u of %u: %u steps verified\n", round + 1, rounds, steps);
        fflush(stdout);
    }
    gpushare_close(&device.gpu);
    for (unsigned c = 0; c < k; c++) {
        unsigned members = 0;
        for (unsigned i = 0; i < table.rows; i++)
            members += labels[i] == c;
        printf("centre %u (%u rows):", c, members);
        for (unsigned j = 0; j < table.columns; j++)
            printf(" %g", centres[(size_t)c * table.columns + j]);
        printf("\n");
    }
    printf("kmeans: %u rows in %u groups, %u steps, verified\n", table.rows, k, steps);
    free(centres);
    free(expected);
    free(labels);
    free(expected_labels);
    free(table.values);
    return 0;
}
