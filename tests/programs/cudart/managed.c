/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Managed variables, as nvcc's start-up code registers them and its host code reads them. */
#include "tests/programs/cudart/cudart.h"
#include "tests/programs/cudart/image.h"

static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .global .attribute(.managed) .align 4 .u32 number = 5;\n"
                           ".visible .entry doubled()\n"
                           "{\n"
                           "  .reg .u32 %r;\n"
                           "  ld.global.u32 %r, [number]; add.u32 %r, %r, %r;\n"
                           "  st.global.u32 [number], %r;\n"
                           "  ret;\n"
                           "}\n";

static uint32_t *number; /* what nvcc's host code has in the place of the variable */
static void *lost;
static char doubled;

static void twice(void)
{
    EXPECT(0, cudaLaunchKernel(&doubled, (cudart_dim3){1, 1, 1}, (cudart_dim3){1, 1, 1}, NULL, 0,
                               NULL));
    EXPECT(0, cudaDeviceSynchronize());
}

/* before: the host reads the variable before a kernel of the image is launched. */
static void check(void **handle, int before)
{
    void *place = NULL;
    size_t size = 0;
    uint32_t word = 7;

    if (!before)
        twice();
    CHECK(__cudaInitModule(handle) != 0 && number);
    CHECK(*(volatile uint32_t *)number == (before ? 5 : 10));
    *number = 21;
    twice();
    CHECK(*(volatile uint32_t *)number == 42);
    /* The host's code names it by its address, and the start-up code by that of the pointer. */
    EXPECT(0, cudaGetSymbolAddress(&place, number));
    CHECK(place == (void *)number);
    EXPECT(0, cudaGetSymbolSize(&size, &number));
    CHECK(size == sizeof(word));
    EXPECT(0, cudaMemcpyToSymbol(number, &word, sizeof(word), 0, CUDART_HOST_TO_DEVICE));
    EXPECT(0, cudaDeviceSynchronize());
    CHECK(*(volatile uint32_t *)number == 7);
}

void check_managed_variables(void)
{
    static struct image image;
    void **handle;

    image_make(&image, text, 75);
    handle = __cudaRegisterFatBinary(&image.wrapper);
    __cudaRegisterFunction(handle, &doubled, &doubled, "doubled", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterManagedVar(handle, (void **)&number, NULL, "number", 0, sizeof(uint32_t), 0, 0);
    __cudaRegisterManagedVar(NULL, &lost, NULL, "number", 0, sizeof(uint32_t), 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    CHECK(!number);
    check(handle, 1);
    EXPECT(0, cudaDeviceReset());
    number = NULL;
    check(handle, 0);
    __cudaUnregisterFatBinary(handle);

    /* No kernel of it fits the device: a test looks at what is said. */
    number = NULL;
    image_make(&image, text, 200);
    handle = __cudaRegisterFatBinary(&image.wrapper);
    __cudaRegisterManagedVar(handle, (void **)&number, NULL, "number", 0, sizeof(uint32_t), 0, 0);
    CHECK(__cudaInitModule(handle) == 0 && !number);
    __cudaUnregisterFatBinary(handle);
    CHECK(cudaGetSymbolSize(&(size_t){0}, &lost) == CUDART_MEMORY_ALLOCATION);
    (void)cudaGetLastError();
    EXPECT(0, cudaDeviceReset());
}
