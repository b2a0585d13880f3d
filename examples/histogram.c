/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * histogram: counts the byte values of files, with atomics in shared and in global memory.
 *
 * usage: histogram [-r ROUNDS] FILE...
 *
 * Shows a shared host buffer: the program reads the file into the buffer, and the device copies
 * from there, without another copy in between.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "examples/example.h"

INCLUDE_PTX(histogram_ptx, "examples/kernels/histogram.ptx");

enum { CHUNK = 4 << 20, BINS = 256 };

static gpushare_connection *gpu;
static gpushare_function *histogram;
static gpushare_address device_bytes, device_bins;
static unsigned char *buffer;

static int count_file(const char *path, unsigned long long *total)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "histogram: %s: %s\n", path, strerror(errno));
        return 1;
    }
    unsigned expected[BINS] = {0}, bins[BINS];
    unsigned long long bytes = 0;
    size_t got;
    CHECK(gpushare_fill(gpu, device_bins, 0, 4, BINS));
    while ((got = fread(buffer, 1, CHUNK, file)) > 0) {
        for (size_t i = 0; i < got; i++)
            expected[buffer[i]]++;
        unsigned long long count = got;
        struct gpushare_dim grid = {64, 1, 1}, block = {256, 1, 1};
        void *parameters[] = {&device_bytes, &count, &device_bins};
        CHECK(gpushare_copy_to_device_async(gpu, device_bytes, buffer, got, NULL));
        CHECK(gpushare_launch(histogram, grid, block, 0, NULL, parameters));
        CHECK(gpushare_synchronize(gpu)); /* the next read overwrites the buffer */
        bytes += got;
    }
    int failed = ferror(file);
    fclose(file);
    if (failed) {
        fprintf(stderr, "histogram: %s: can't be read\n", path);
        return 1;
    }
    CHECK(gpushare_copy_from_device(gpu, bins, device_bins, sizeof bins));
    for (unsigned i = 0; i < BINS; i++)
        if (bins[i] != expected[i]) {
            fprintf(stderr, "histogram: %s: value %u counted %u times, not %u\n", path, i, bins[i],
                    expected[i]);
            return 1;
        }
    unsigned most = 0;
    for (unsigned i = 1; i < BINS; i++)
        if (bins[i] > bins[most])
            most = i;
    printf("%s: %llu bytes, most often %u (%u times), verified\n", path, bytes, most, bins[most]);
    fflush(stdout);
    *total += bytes;
    return 0;
}

int main(int argc, char **argv)
{
    unsigned rounds = 1;
    int option;
    while ((option = getopt(argc, argv, "r:")) != -1)
        rounds = option == 'r' ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    if (optind == argc || !rounds) {
        fprintf(stderr, "usage: histogram [-r ROUNDS] FILE...\n");
        return 2;
    }
    gpushare_module *module;
    void *host;
    CHECK(gpushare_connect(NULL, &gpu));
    CHECK(gpushare_module_load(gpu, histogram_ptx, 0, &module));
    CHECK(gpushare_module_function(module, "histogram", &histogram));
    CHECK(gpushare_memory_alloc(gpu, CHUNK, &device_bytes));
    CHECK(gpushare_memory_alloc(gpu, BINS * sizeof(unsigned), &device_bins));
    CHECK(gpushare_host_alloc(gpu, CHUNK, &host));
    buffer = host;

    unsigned long long total = 0;
    for (unsigned round = 0; round < rounds; round++)
        for (int i = optind; i < argc; i++)
            if (count_file(argv[i], &total))
                return 1;
    gpushare_close(&gpu);
    printf("histogram: %llu bytes verified\n", total);
    return 0;
}
