/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * mandelbrot: draws the set into a PNG.
 *
 * usage: mandelbrot [-s WIDTHxHEIGHT] [-i STEPS] [-r ROUNDS] -o OUT.png
 */
#include <png.h>
#include <string.h>
#include <unistd.h>

#include "examples/example.h"

INCLUDE_PTX(mandelbrot_ptx, "examples/kernels/mandelbrot.ptx");

static unsigned width = 480, height = 320, most = 256, rounds = 1;
static const char *output;

static void parse(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "s:i:r:o:")) != -1) {
        if (option == 's' && sscanf(optarg, "%ux%u", &width, &height) != 2)
            width = 0;
        else if (option == 'i')
            most = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'o')
            output = optarg;
        else
            rounds = option == 'r' ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    }
    if (optind != argc || !output || !width || !height || width > 16384 || height > 16384 ||
        !most || !rounds) {
        fprintf(stderr, "usage: mandelbrot [-s WIDTHxHEIGHT] [-i STEPS] [-r ROUNDS] -o OUT.png\n");
        exit(2);
    }
}

static unsigned reference(double cr, double ci)
{
    double zr = 0, zi = 0;
    unsigned n = 0;
    while (n < most && zr * zr + zi * zi <= 4.0) {
        double next = zr * zr - zi * zi + cr;
        zi = 2.0 * zr * zi + ci;
        zr = next;
        n++;
    }
    return n;
}

/* Points outside go from blue to white with their number of steps; points inside are black. */
static int write_png(const unsigned *steps)
{
    unsigned char *pixels = malloc((size_t)width * height * 3);
    if (!pixels)
        return -1;
    for (size_t i = 0; i < (size_t)width * height; i++) {
        unsigned shade = steps[i] >= most ? 0 : 255 - 255 / (1 + steps[i] / 4);
        pixels[3 * i] = pixels[3 * i + 1] = (unsigned char)shade;
        pixels[3 * i + 2] = steps[i] >= most ? 0 : (unsigned char)(128 + shade / 2);
    }
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    int written = png_image_write_to_file(&image, output, 0, pixels, 0, NULL);
    free(pixels);
    if (!written)
        fprintf(stderr, "mandelbrot: %s: %s\n", output, image.message);
    return written ? 0 : -1;
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    size_t count = (size_t)width * height;
    unsigned *steps = malloc(count * sizeof *steps), *expected = malloc(count * sizeof *expected);
    if (!steps || !expected)
        return 1;
    double pixel = 3.0 / width, left = -2.25, top = pixel * height / 2;
    for (unsigned row = 0; row < height; row++)
        for (unsigned column = 0; column < width; column++)
            expected[(size_t)row * width + column] =
                reference(left + column * pixel, top - row * pixel);

    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *mandelbrot;
    gpushare_address device;
    CHECK(gpushare_connect(NULL, &gpu));
    CHECK(gpushare_module_load(gpu, mandelbrot_ptx, 0, &module));
    CHECK(gpushare_module_function(module, "mandelbrot", &mandelbrot));
    CHECK(gpushare_memory_alloc(gpu, count * sizeof *steps, &device));
    struct gpushare_dim grid = {(width + 15) / 16, (height + 15) / 16, 1}, block = {16, 16, 1};
    void *parameters[] = {&device, &width, &height, &left, &top, &pixel, &most};
    for (unsigned round = 0; round < rounds; round++) {
        /* Values that an earlier round left must not count as this round's. */
        CHECK(gpushare_fill(gpu, device, 0xffffffffu, 4, count));
        CHECK(gpushare_launch(mandelbrot, grid, block, 0, NULL, parameters));
        CHECK(gpushare_copy_from_device(gpu, steps, device, count * sizeof *steps));
        /* A device that fuses multiply and add may be one step off where the border is fractal. */
        size_t different = 0;
        for (size_t i = 0; i < count; i++)
            different += steps[i] != expected[i];
        if (different > count / 1000) {
            fprintf(stderr, "mandelbrot: %zu of %zu pixels differ from the reference\n", different,
                    count);
            return 1;
        }
        printf("round %u of %u: %zu pixels verified, %zu on the border differ\n", round + 1, rounds,
               count, different);
        fflush(stdout);
    }
    gpushare_close(&gpu);
    int failed = write_png(steps);
    free(steps);
    free(expected);
    if (failed)
        return 1;
    printf("mandelbrot: %zu pixels verified, drawn to %s\n", count * rounds, output);
    return 0;
}
