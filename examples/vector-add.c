/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * vector-add: the smallest complete client. It computes c = a + b in some rounds and checks each.
 *
 * usage: vector-add [-n ELEMENTS] [-r ROUNDS]
 */
#include <string.h>
#include <unistd.h>

#include "examples/example.h"

INCLUDE_PTX(vector_add_ptx, "examples/kernels/vector-add.ptx");

static unsigned count = 1 << 20, rounds = 4;

static void fill(float *values, unsigned seed)
{
    for (unsigned i = 0; i < count; i++)
        values[i] = (float)((i * 2654435761u + seed) >> 8) / 65536.0f;
}

static void parse(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "n:r:")) != -1) {
        if (option == 'n')
            count = (unsigned)strtoul(optarg, NULL, 10);
        else
            rounds = option == 'r' ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    }
    if (optind != argc || !count || !rounds) {
        fprintf(stderr, "usage: vector-add [-n ELEMENTS] [-r ROUNDS]\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    size_t bytes = (size_t)count * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
    if (!a || !b || !c)
        return 1;

    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *add;
    gpushare_address device_a, device_b, device_c;
    CHECK(gpushare_connect(NULL, &gpu));
    CHECK(gpushare_module_load(gpu, vector_add_ptx, 0, &module));
    CHECK(gpushare_module_function(module, "vector_add", &add));
    CHECK(gpushare_memory_alloc(gpu, bytes, &device_a));
    CHECK(gpushare_memory_alloc(gpu, bytes, &device_b));
    CHECK(gpushare_memory_alloc(gpu, bytes, &device_c));

    for (unsigned round = 0; round < rounds; round++) {
        fill(a, round);
        fill(b, round + 77);
        CHECK(gpushare_copy_to_device(gpu, device_a, a, bytes));
        CHECK(gpushare_copy_to_device(gpu, device_b, b, bytes));

        struct gpushare_dim grid = {(count + 255) / 256, 1, 1}, block = {256, 1, 1};
        void *parameters[] = {&device_a, &device_b, &device_c, &count};
        CHECK(gpushare_launch(add, grid, block, 0, NULL, parameters));
        CHECK(gpushare_copy_from_device(gpu, c, device_c, bytes)); /* waits for the kernel */

        for (unsigned i = 0; i < count; i++)
            if (c[i] != a[i] + b[i]) {
                fprintf(stderr, "vector-add: element %u is %g, not %g\n", i, c[i], a[i] + b[i]);
                return 1;
            }
        printf("round %u of %u: %u sums verified\n", round + 1, rounds, count);
        fflush(stdout);
    }
    gpushare_close(&gpu);
    free(a);
    free(b);
    free(c);
    printf("vector-add: %u sums verified\n", count * rounds);
    return 0;
}
