/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A library with a kernel, as nvcc would make it: its constructor registers the image, and has it
 * given up when the library is unloaded or the process ends.
 */
#include "client/cuda/runtime/runtime_exports.h"
#include "tests/programs/cudart/image.h"

__asm__(".section .rodata\n"
        "plugin_kernels: .incbin \"tests/programs/cudart/kernels.ptx\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char plugin_kernels[] __attribute__((visibility("hidden")));

static struct image image;
static void **handle;
static char kernel;

static void unregister(void)
{
    __cudaUnregisterFatBinary(handle);
}

static void __attribute__((constructor)) begin(void)
{
    image_make(&image, plugin_kernels, 75);
    handle = __cudaRegisterFatBinary(&image.wrapper);
    __cudaRegisterFunction(handle, &kernel, NULL, "scaled_add", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
    (void)atexit(unregister);
}

/* Adds ones to total, and does not wait. */
API cudart_error plugin_add(float *total, float *ones, unsigned count);
cudart_error plugin_add(float *total, float *ones, unsigned count)
{
    const cudart_dim3 grid = {(count + 127) / 128, 1, 1}, block = {128, 1, 1};
    void *params[] = {&total, &ones, &total, &count};
    return cudaLaunchKernel(&kernel, grid, block, params, 0, NULL);
}
