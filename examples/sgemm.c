/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sgemm: c = a * b for square matrices, tiled through shared memory.
 *
 * usage: sgemm [-n SIZE] [-r ROUNDS]
 *
 * The kernel and the reference below add products in the same order and round after
 * each operation, so they must agree to the last bit.
 */
#include <string.h>
#include <unistd.h>

#include "examples/example.h"

INCLUDE_PTX(sgemm_ptx, "examples/kernels/sgemm.ptx");

enum { TILE = 16 };

static unsigned size = 128, rounds = 1;

static void parse(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "n:r:")) != -1) {
        if (option == 'n')
            size = (unsigned)strtoul(optarg, NULL, 10);
        else
            rounds = option == 'r' ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    }
    if (optind != argc || !size || size > 16384 || !rounds) {
        fprintf(stderr, "usage: sgemm [-n SIZE] [-r ROUNDS]\n");
        exit(2);
    }
}

static void reference(const float *a, const float *b, float *c)
{
    memset(c, 0, (size_t)size * size * sizeof *c);
    for (unsigned row = 0; row < size; row++)
        for (unsigned k = 0; k < size; k++) {
            float factor = a[(size_t)row * size + k];
            for (unsigned column = 0; column < size; column++) {
                float product = factor * b[(size_t)k * size + column];
                c[(size_t)row * size + column] += product;
            }
        }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    size_t elements = (size_t)size * size, bytes = elements * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes), *expected = malloc(bytes);
    if (!a || !b || !c || !expected)
        return 1;
    for (size_t i = 0; i < elements; i++) {
        a[i] = (float)((i * 7919) % 2003) / 1001.0f - 1.0f;
        b[i] = (float)((i * 104729) % 1999) / 999.0f - 1.0f;
    }

    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *sgemm;
    gpushare_address device_a, device_b, device_c;
    CHECK(gpushare_connect(NULL, &gpu));
    CHECK(gpushare_module_load(gpu, sgemm_ptx, 0, &module));
    CHECK(gpushare_module_function(module, "sgemm", &sgemm));
    CHECK(gpushare_memory_alloc(gpu, bytes, &device_a));
    CHECK(gpushare_memory_alloc(gpu, bytes, &device_b));
    CHECK(gpushare_memory_alloc(gpu, bytes, &device_c));
    CHECK(gpushare_copy_to_device(gpu, device_a, a, bytes));
    CHECK(gpushare_copy_to_device(gpu, device_b, b, bytes));
    reference(a, b, expected);

    unsigned tiles = (size + TILE - 1) / TILE;
    struct gpushare_dim grid = {tiles, tiles, 1}, block = {TILE, TILE, 1};
    void *parameters[] = {&device_a, &device_b, &device_c, &size};
    for (unsigned round = 0; round < rounds; round++) {
        CHECK(gpushare_fill(gpu, device_c, 0xffffffffu, 4, elements));
        CHECK(gpushare_launch(sgemm, grid, block, 0, NULL, parameters));
        CHECK(gpushare_copy_from_device(gpu, c, device_c, bytes));
        for (size_t i = 0; i < elements; i++)
            if (memcmp(&c[i], &expected[i], sizeof c[i])) {
                fprintf(stderr, "sgemm: row %zu, column %zu is %.9g, not %.9g\n", i / size,
                        i % size, c[i], expected[i]);
                return 1;
            }
        printf("round %u of %u: %u x %u verified\n", round + 1, rounds, size, size);
        fflush(stdout);
    }
    gpushare_close(&gpu);
    free(a);
    free(b);
    free(c);
    free(expected);
    printf("sgemm: %u products of %u x %u matrices verified\n", rounds, size, size);
    return 0;
}
