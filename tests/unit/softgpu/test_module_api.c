/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Modules as the driver's calls see them: images of every kind, errors with their
 * log, functions and their attributes; and the library's front door.
 */
#include "tests/unit/softgpu/kernels.h"

#include <dlfcn.h>
#include <zstd.h>

#include "common/error.h"

static int setup(void **state)
{
    (void)state;
    return kernels_open();
}

static void text_that_is_no_ptx_is_told_with_its_line(void **state)
{
    static const char text[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry broken()\n{\n    frobnicate.u32 %r1, %r2;\n    ret;\n}\n";
    char log[256] = "";
    cuda_jit_option options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
    cuda_module module;

    (void)state;
    assert_int_equal(cuModuleLoadDataEx(&module, text, 2, options, values), CUDA_ERR_INVALID_PTX);
    assert_non_null(strstr(log, "6"));
    assert_non_null(strstr(log, "frobnicate"));
    assert_int_equal((uintptr_t)values[1], strlen(log) + 1);
    /* A short buffer holds what fits, with its NUL. */
    memset(log, 'x', sizeof(log));
    values[1] = (void *)(uintptr_t)8;
    assert_int_equal(cuModuleLoadDataEx(&module, text, 2, options, values), CUDA_ERR_INVALID_PTX);
    assert_int_equal(strlen(log), 7);
    assert_int_equal(log[8], 'x');
    assert_int_equal(cuModuleLoadData(&module, "rubbish"), CUDA_ERR_INVALID_PTX);
    assert_int_equal(cuModuleLoadData(&module, NULL), CUDA_ERR_INVALID_VALUE);
}

static void a_cubin_is_not_for_this_device(void **state)
{
    static const unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    cuda_module module;

    (void)state;
    assert_int_equal(cuModuleLoadData(&module, elf), CUDA_ERR_NO_BINARY_FOR_GPU);
}

/* A container with one entry, compressed by zstd. */
static unsigned char *make_fatbin(uint32_t arch, const char *text, size_t *size)
{
    size_t length = strlen(text) + 1, bound = ZSTD_compressBound(length), stored, padded;
    unsigned char *fatbin = calloc(1, 16 + 64 + bound + 8), *entry = fatbin + 16;

    assert_non_null(fatbin);
    stored = ZSTD_compress(entry + 64, bound, text, length, 3);
    assert_false(ZSTD_isError(stored));
    padded = (stored + 7) / 8 * 8;
    *(uint32_t *)fatbin = 0xba55ed50;
    *(uint16_t *)(fatbin + 4) = 1;
    *(uint16_t *)(fatbin + 6) = 16;
    *(uint64_t *)(fatbin + 8) = 64 + padded;
    *(uint16_t *)entry = 1;
    *(uint16_t *)(entry + 2) = 0x101;
    *(uint32_t *)(entry + 4) = 64;
    *(uint64_t *)(entry + 8) = padded;
    *(uint32_t *)(entry + 16) = (uint32_t)stored;
    *(uint32_t *)(entry + 28) = arch;
    *(uint64_t *)(entry + 40) = 0x8011;
    *(uint64_t *)(entry + 56) = length;
    *size = 16 + 64 + padded;
    return fatbin;
}

static void a_fatbin_gives_its_ptx(void **state)
{
    cuda_function function;
    cuda_module module;
    size_t size;
    unsigned char *fatbin = make_fatbin(70, kernels_ptx, &size);

    (void)state;
    OK(cuModuleLoadData(&module, fatbin));
    OK(cuModuleGetFunction(&function, module, "sleep"));
    OK(cuModuleUnload(module));
    fatbin[16 + 64 + 20] ^= 0xff;
    assert_int_equal(cuModuleLoadData(&module, fatbin), CUDA_ERR_INVALID_IMAGE);
    free(fatbin);
    fatbin = make_fatbin(100, kernels_ptx, &size);
    assert_int_equal(cuModuleLoadData(&module, fatbin), CUDA_ERR_NO_BINARY_FOR_GPU);
    free(fatbin);
}

static void functions_tell_their_shape(void **state)
{
    const struct {
        size_t offset, size;
    } wanted[] = {{0, 8}, {8, 8}, {16, 8}, {24, 4}};
    cuda_function functions[16], missing;
    unsigned count = 0;
    const char *name = NULL;
    size_t offset, size;
    int value;

    (void)state;
    OK(cuModuleGetFunctionCount(&count, kernels.module));
    assert_int_equal(count, 7);
    OK(cuModuleEnumerateFunctions(functions, count, kernels.module));
    OK(cuFuncGetName(&name, functions[0]));
    assert_string_equal(name, "sleep");
    assert_int_equal(cuModuleGetFunction(&missing, kernels.module, "nobody"), CUDA_ERR_NOT_FOUND);
    for (size_t i = 0; i < 4; i++) {
        OK(cuFuncGetParamInfo(kernels.add, i, &offset, &size));
        assert_int_equal(offset, wanted[i].offset);
        assert_int_equal(size, wanted[i].size);
    }
    assert_int_equal(cuFuncGetParamInfo(kernels.add, 4, &offset, &size), CUDA_ERR_INVALID_VALUE);
    OK(cuFuncGetAttribute(&value, CUDA_FUNC_MAX_THREADS_PER_BLOCK, kernels.add));
    assert_int_equal(value, 1024);
    OK(cuFuncGetAttribute(&value, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernels.add));
    assert_int_equal(value, 48 << 10);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, kernels.add, 1024, 0));
    assert_int_equal(value, 2);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, kernels.add, 32, 0));
    assert_int_equal(value, 32);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, kernels.add, 32, 48 << 10));
    assert_int_equal(value, 4);
}

static void variables_have_an_address(void **state)
{
    cuda_device_ptr ptr = 0;
    size_t size = 0;
    uint32_t value = 5, back = 0;

    (void)state;
    OK(cuModuleGetGlobal_v2(&ptr, &size, kernels.module, "counter"));
    assert_int_equal(size, 64);
    OK(cuMemcpyHtoD_v2(ptr + 60, &value, 4));
    OK(cuMemcpyDtoH_v2(&back, ptr + 60, 4));
    assert_int_equal(back, 5);
    assert_int_equal(cuMemcpyHtoD_v2(ptr + 64, &value, 4), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuModuleGetGlobal_v2(&ptr, &size, kernels.module, "nothing"),
                     CUDA_ERR_NOT_FOUND);
}

static void the_library_opens_as_a_driver(void **state)
{
    struct cuda_driver driver;
    char path[512];
    struct error why = {0};
    int version = 0;

    (void)state;
    if (!getenv("BUILD"))
        skip();
    snprintf(path, sizeof(path), "%s/lib/softgpu/libcuda.so.1", getenv("BUILD"));
    if (access(path, R_OK) != 0)
        skip();
    if (cuda_driver_open(&driver, path, &why) != 0)
        fail_msg("%s", why.text);
    assert_true(cuda_driver_has_green_contexts(&driver));
    OK(driver.cuDriverGetVersion(&version));
    assert_int_equal(version, 13000);
    /* Each way to a function leads to the same one. */
#define X(name, symbol, entry_version, need, params)                                               \
    assert_ptr_equal((void *)driver.name, dlsym(driver.library, #symbol));
    CUDA_DRIVER_ENTRIES(X)
#undef X
    cuda_driver_close(&driver);
}

static void the_version_chooses_the_function(void **state)
{
    cuda_proc_address_status status;
    void *fn;

    (void)state;
    OK(cuGetProcAddress_v2("cuCtxSynchronize", &fn, 12080, 0, &status));
    assert_ptr_equal(fn, (void *)cuCtxSynchronize);
    OK(cuGetProcAddress_v2("cuCtxSynchronize", &fn, 13000, 0, &status));
    assert_ptr_equal(fn, (void *)cuCtxSynchronize_v2);
    assert_int_equal(cuGetProcAddress_v2("cuMemAlloc", &fn, 2000, 0, &status), CUDA_ERR_NOT_FOUND);
    assert_int_equal(status, CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND); /* its older form is refused */
    assert_int_equal(cuGetProcAddress_v2("cuGreenCtxCreate", &fn, 12030, 0, &status),
                     CUDA_ERR_NOT_FOUND);
    assert_int_equal(status, CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_int_equal(cuGetProcAddress_v2("cuNoSuchCall", &fn, 13000, 0, &status),
                     CUDA_ERR_NOT_FOUND);
    assert_int_equal(status, CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_null(fn);
    /* The per-thread form of a launch is another function. */
    OK(cuGetProcAddress_v2("cuLaunchKernel", &fn, 13000,
                           CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    assert_ptr_equal(fn, (void *)cuLaunchKernel_ptsz);
    OK(cuGetProcAddress_v2("cuMemAlloc", &fn, 13000, CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                           &status));
}

/* The last one: it takes the modules of the others, too. */
static void a_context_takes_its_modules_along(void **state)
{
    const char *variable = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .global .align 8 .b8 room[67108864];\n";
    size_t before, beside, after, total;
    cuda_module module;
    cuda_device_ptr ptr;

    (void)state;
    OK(cuModuleUnload(kernels.module));
    OK(cuMemGetInfo_v2(&before, &total));
    OK(cuModuleLoadData(&module, variable));
    OK(cuMemGetInfo_v2(&beside, &total));
    assert_true(before - beside >= 64 << 20);
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxRetain(&kernels.context, 0));
    OK(cuCtxSetCurrent(kernels.context));
    OK(cuMemGetInfo_v2(&after, &total));
    assert_int_equal(after, before);
    assert_int_equal(cuModuleGetGlobal_v2(&ptr, NULL, module, "room"), CUDA_ERR_INVALID_HANDLE);
    assert_int_equal(cuModuleUnload(module), CUDA_ERR_INVALID_HANDLE);

    /* A context that is given back ends in the same way. */
    OK(cuModuleLoadData(&module, variable));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRetain(&kernels.context, 0));
    OK(cuMemGetInfo_v2(&after, &total));
    assert_int_equal(after, before);
    assert_int_equal(cuModuleUnload(module), CUDA_ERR_INVALID_HANDLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_that_is_no_ptx_is_told_with_its_line),
        cmocka_unit_test(a_cubin_is_not_for_this_device),
        cmocka_unit_test(a_fatbin_gives_its_ptx),
        cmocka_unit_test(functions_tell_their_shape),
        cmocka_unit_test(variables_have_an_address),
        cmocka_unit_test(the_library_opens_as_a_driver),
        cmocka_unit_test(the_version_chooses_the_function),
        cmocka_unit_test(a_context_takes_its_modules_along),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
