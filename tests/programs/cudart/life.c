/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The life of a program and its parts: two runtimes, contexts of the program's own, forks, threads
 * that exit, libraries that come and go, the end of the process. It exits with 0 if all went as
 * with CUDA's libraries; otherwise it names the first call that did not.
 *
 *   life both|context|fork|threads|exit|endless|unload|unload-all|unload-driver FOLDER
 *
 * FOLDER has libplugin_12.so and libplugin_13.so.
 */
#include "tests/programs/cudart/life.h"

#include <dlfcn.h>
#include <string.h>

#include "tests/programs/cudart/image.h"

__asm__(".section .rodata\n"
        "life_kernels: .incbin \"tests/programs/cudart/kernels.ptx\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char life_kernels[];

static void *open_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    return library;
}

void life_runtime_open(struct runtime *runtime, int release)
{
    static struct image images[2];
    struct image *image = &images[release - 12];
    void *library = open_library(release == 12 ? "libcudart.so.12" : "libcudart.so.13");
#define X(name)                                                                                    \
    *(void **)&runtime->name = dlsym(library, #name);                                              \
    CHECK(runtime->name);
    RUNTIME_CALLS(X)
#undef X
    image_make(image, life_kernels, 75);
    runtime->image = runtime->__cudaRegisterFatBinary(&image->wrapper);
    CHECK(runtime->image);
    runtime->__cudaRegisterFunction(runtime->image, (const char *)runtime, NULL, "scaled_add", -1,
                                    NULL, NULL, NULL, NULL, NULL);
}

void *life_driver_open(struct driver *driver)
{
    void *library = open_library("libcuda.so.1");
#define X(name)                                                                                    \
    *(void **)&driver->name = dlsym(library, #name);                                               \
    CHECK(driver->name);
    DRIVER_CALLS(X)
#undef X
    return library;
}

void life_sum_make(const struct runtime *runtime, struct sum *sum)
{
    float values[LIFE_COUNT] = {0};
    OK(runtime->cudaMalloc((void **)&sum->total, sizeof values));
    OK(runtime->cudaMalloc((void **)&sum->ones, sizeof values));
    OK(runtime->cudaMemcpy(sum->total, values, sizeof values, CUDART_HOST_TO_DEVICE));
    for (int i = 0; i < LIFE_COUNT; i++)
        values[i] = 1;
    OK(runtime->cudaMemcpy(sum->ones, values, sizeof values, CUDART_HOST_TO_DEVICE));
}

void life_sum_free(const struct runtime *runtime, struct sum *sum)
{
    OK(runtime->cudaFree(sum->total));
    OK(runtime->cudaFree(sum->ones));
}

/* The kernel multiplies with a factor, which is 1. */
cudart_error life_sum_add(const struct runtime *runtime, struct sum *sum, cuda_stream stream)
{
    const cudart_dim3 grid = {LIFE_COUNT / 128, 1, 1}, block = {128, 1, 1};
    uint32_t count = LIFE_COUNT;
    void *params[] = {&sum->total, &sum->ones, &sum->total, &count};
    return runtime->cudaLaunchKernel(runtime, grid, block, params, 0, stream);
}

void life_sum_demand(const struct runtime *runtime, const struct sum *sum, float total)
{
    float values[LIFE_COUNT];
    OK(runtime->cudaMemcpy(values, sum->total, sizeof values, CUDART_DEVICE_TO_HOST));
    for (int i = 0; i < LIFE_COUNT; i++)
        CHECK(values[i] == total);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(const char *folder);
    } modes[] = {
        {"both", life_both},
        {"context", life_context},
        {"fork", life_fork},
        {"threads", life_threads},
        {"exit", life_exit},
        {"endless", life_endless},
        {"unload", life_unload},
        {"unload-all", life_unload_all},
        {"unload-driver", life_unload_driver},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (count == 3 && !strcmp(words[1], modes[i].name)) {
            modes[i].run(words[2]);
            printf("right\n");
            return 0;
        }
    fprintf(stderr, "usage: life MODE FOLDER\n");
    return 2;
}
