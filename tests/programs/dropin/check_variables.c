/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Managed variables, and which kernels a module has. */
#include <string.h>

#include "tests/programs/dropin/dropin.h"

/* add writes total += table[1] * table[5], and the second of these is written by the host. The word
 * .entry of the comment names no kernel, and each other kernel stands twice. */
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           "// .entry nothing\n"
                           ".visible .global .attribute(.managed) .align 4 .b8 table[8] = {3, 2};\n"
                           ".visible .global .attribute(.managed) .align 8 .u64 total = 40;\n"
                           ".visible .global .align 4 .u32 plain = 9;\n"
                           ".visible .entry add();\n"
                           ".visible .entry add()\n"
                           "{\n"
                           "  .reg .u32 %r<4>; .reg .u64 %d<3>; .reg .pred %p;\n"
                           "  ld.global.u8 %r1, [table+1];\n"
                           "  mov.u64 %d1, table;\n"
                           "  ld.global.u8 %r2, [%d1+5];\n"
                           "  mul.lo.u32 %r3, %r1, %r2; cvt.u64.u32 %d1, %r3;\n"
                           "  setp.eq.u32 %p, %r2, 0;\n"
                           "  @!%p atom.global.add.u64 %d2, [total], %d1;\n"
                           "  ret;\n"
                           "}\n"
                           ".visible .entry other()\n{\n  ret;\n}\n";

static void launch(cuda_library library)
{
    cuda_kernel kernel;
    OK(cuLibraryGetKernel(&kernel, library, "add"));
    OK(cuLaunchKernel((cuda_function)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
}

static volatile uint8_t *find(cuda_library library, const char *name, size_t expected)
{
    cuda_device_ptr ptr, global;
    size_t size = 0, bytes = 0;
    unsigned managed = 0;
    OK(cuLibraryGetManaged(&ptr, &size, library, name));
    OK(cuLibraryGetGlobal(&global, &bytes, library, name));
    CHECK(size == expected && bytes == expected && ptr == global);
    OK(cuPointerGetAttribute(&managed, CUDA_POINTER_IS_MANAGED, ptr));
    CHECK(managed);
    return (volatile uint8_t *)(uintptr_t)ptr;
}

void check_variables(void)
{
    cuda_library library;
    cuda_device_ptr ptr;
    size_t size = 0;
    uint64_t found = 0;
    OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    volatile uint8_t *table = find(library, "table", 8);
    volatile uint64_t *total = (volatile uint64_t *)find(library, "total", 8);
    CHECK(table[0] == 3 && table[1] == 2 && table[7] == 0 && *total == 40);
    EXPECT(CUDA_ERR_NOT_FOUND, cuLibraryGetManaged(&ptr, &size, library, "plain"));
    EXPECT(CUDA_ERR_NOT_FOUND, cuLibraryGetManaged(&ptr, &size, library, "nothing"));
    OK(cuLibraryGetGlobal(&ptr, &size, library, "plain"));
    launch(library);
    CHECK(*total == 40); /* table[5] is 0 */
    table[5] = 6;
    launch(library);
    launch(library);
    CHECK(*total == 64);
    OK(cuMemcpyDtoH_v2(&found, (cuda_device_ptr)(uintptr_t)total, sizeof found));
    CHECK(found == 64);
    /* Another module from the same text has variables of its own. */
    cuda_library again;
    OK(cuLibraryLoadData(&again, text, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(*(volatile uint64_t *)find(again, "total", 8) == 40 && *total == 64);
    OK(cuLibraryUnload(again));
    OK(cuLibraryUnload(library));
}

void check_enumeration(const struct work *work)
{
    cuda_library library;
    cuda_kernel kernels[3] = {NULL, NULL, (cuda_kernel)work};
    cuda_function functions[8] = {NULL};
    unsigned count = 0;
    const char *first, *second;
    OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernelCount(&count, library));
    CHECK(count == 2);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLibraryGetKernelCount(NULL, library));
    OK(cuLibraryEnumerateKernels(kernels, 3, library));
    CHECK(kernels[2] == (cuda_kernel)work);
    OK(cuKernelGetName(&first, kernels[0]));
    OK(cuKernelGetName(&second, kernels[1]));
    CHECK(!strcmp(first, "add") && !strcmp(second, "other"));
    OK(cuLibraryUnload(library));
    OK(cuModuleGetFunctionCount(&count, work->module));
    CHECK(count == 3);
    OK(cuModuleEnumerateFunctions(functions, 2, work->module));
    CHECK(functions[0] && functions[1] && !functions[2]);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuModuleEnumerateFunctions(NULL, 2, work->module));
}
