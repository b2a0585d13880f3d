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

/* Arrays as operands: name[n] for an address in brackets, and for a value. An array of vectors is
 * counted in their scalar type. */
static const char elements_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 plain[6] = {10, 11, 12, 13};\n"
    ".visible .global .attribute(.managed) .align 4 .u32 shown[4] = {20, 21, 22, 23};\n"
    ".const .align 4 .u32 fixed[3] = {30, 31, 32};\n"
    ".global .align 16 .v4 .u32 wide[2] = {{40, 41, 42, 43}, {44, 45, 46, 47}};\n"
    ".visible .entry elements(.param .u64 to, .param .align 4 .b32 given[3])\n"
    "{\n"
    "  .reg .u32 %r<10>; .reg .u64 %d<3>;\n"
    "  .shared .align 4 .u32 here[8];\n"
    "  mov.u32 %r0, 50; st.shared.u32 here[2], %r0;\n"
    "  mov.u64 %d1, here[1]; ld.shared.u32 %r0, [%d1+4];\n"
    "  ld.global.u32 %r1, plain[3];\n"
    "  mov.u64 %d1, plain[4-2]; ld.global.u32 %r2, [%d1];\n"
    "  ld.global.v2.u32 {%r3, %r4}, plain[0x0];\n"
    "  st.global.u32 plain[5], %r1;\n"
    "  ld.global.u32 %r5, shown[1];\n"
    "  st.global.u32 shown[3], %r5;\n"
    "  ld.const.u32 %r6, fixed[2];\n"
    "  ld.global.u32 %r7, wide[5];\n"
    "  ld.param.u32 %r8, given[1];\n"
    "  ld.global.u32 %r9, plain[5];\n"
    "  ld.param.u64 %d1, [to];\n"
    "  st.global.u32 [%d1], %r0; st.global.u32 [%d1+4], %r1; st.global.u32 [%d1+8], %r2;\n"
    "  st.global.u32 [%d1+12], %r3; st.global.u32 [%d1+16], %r4; st.global.u32 [%d1+20], %r5;\n"
    "  st.global.u32 [%d1+24], %r6; st.global.u32 [%d1+28], %r7; st.global.u32 [%d1+32], %r8;\n"
    "  st.global.u32 [%d1+36], %r9;\n"
    "  ret;\n"
    "}\n";

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

void check_elements(void)
{
    static const uint32_t expected[10] = {50, 13, 12, 10, 11, 21, 32, 45, 61, 13};
    uint32_t given[3] = {60, 61, 62}, found[10];
    cuda_library library;
    cuda_kernel kernel;
    cuda_device_ptr to;
    OK(cuLibraryLoadData(&library, elements_text, NULL, NULL, 0, NULL, NULL, 0));
    volatile uint32_t *shown = (volatile uint32_t *)find(library, "shown", 16);
    OK(cuLibraryGetKernel(&kernel, library, "elements"));
    OK(cuMemAlloc_v2(&to, sizeof found));
    void *params[] = {&to, given};
    OK(cuLaunchKernel((cuda_function)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH_v2(found, to, sizeof found));
    for (unsigned i = 0; i < 10; i++)
        CHECK(found[i] == expected[i]);
    CHECK(shown[3] == 21);
    OK(cuMemFree_v2(to));
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
