/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Modules, libraries, kernels and launches. */
#include <string.h>

#include "tests/programs/dropin/dropin.h"

void check_kernels(const struct work *work)
{
    cuda_function function;
    cuda_module module;
    cuda_device_ptr sum;
    size_t size, offset, bytes;
    int value, blocks;
    const char *name;
    uint32_t found;
    struct {
        cuda_device_ptr words;
        uint32_t times;
    } block = {work->words, 5};
    size_t block_bytes = 12, too_few = 8;
    void *extra[] = {CUDA_LAUNCH_PARAM_BUFFER_POINTER, &block, CUDA_LAUNCH_PARAM_BUFFER_SIZE,
                     &block_bytes, CUDA_LAUNCH_PARAM_END};
    char log[200] = "";
    cuda_jit_option options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    EXPECT(CUDA_ERR_NOT_FOUND, cuModuleGetFunction(&function, work->module, "nothing"));
    OK(cuModuleGetGlobal_v2(&sum, &size, work->module, "sum"));
    CHECK(size == 4);
    OK(cuMemcpyDtoH_v2(&found, sum, 4));
    CHECK(found == 5 + 3 * WORDS); /* check_streams counted by 1 and by 2 */
    OK(cuLaunchKernel(work->count, 1, 1, 1, WORDS, 1, 1, 0, NULL, NULL, extra));
    demand(work, 15);
    extra[3] = &too_few;
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuLaunchKernel(work->count, 1, 1, 1, WORDS, 1, 1, 0, NULL, NULL, extra));
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuLaunchKernel(work->count, 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL));
    OK(cuFuncGetAttribute(&value, CUDA_FUNC_MAX_THREADS_PER_BLOCK, work->count));
    CHECK(value >= 256);
    OK(cuFuncGetParamInfo(work->count, 1, &offset, &bytes));
    CHECK(offset == 8 && bytes == 4);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuFuncGetParamInfo(work->count, 2, &offset, &bytes));
    for (int i = CUDA_FUNC_CLUSTER_SIZE_MUST_BE_SET;
         i <= CUDA_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE; i++) {
        value = 77;
        OK(cuFuncGetAttribute(&value, (cuda_function_attribute)i, work->count));
        CHECK(value == 0);
    }
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuFuncGetAttribute(
               &value,
               (cuda_function_attribute)(CUDA_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE + 1),
               work->count));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuFuncGetName(&name, NULL));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuFuncGetName(NULL, work->count));
    OK(cuFuncGetName(&name, work->count));
    CHECK(!strcmp(name, "count"));
    OK(cuFuncGetModule(&module, work->count));
    CHECK(module == work->module);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, work->count, 64, 0));
    CHECK(blocks >= 1);
    OK(cuFuncSetAttribute(work->count, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    EXPECT(
        CUDA_ERR_INVALID_PTX,
        cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_70\nnonsense\n", 2, options, values));
    /* The zero byte counts too. */
    CHECK(*log && (uintptr_t)values[1] == strlen(log) + 1);
    EXPECT(CUDA_ERR_INVALID_IMAGE, cuModuleLoadData(&module, ""));
    EXPECT(CUDA_ERR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nonexistent/image"));
}

/* A library needs no current context, and outlives the primary one. Questions about a context's
 * part of it need one. */
void check_libraries(void)
{
    cuda_library library, of;
    cuda_kernel kernel;
    cuda_function function;
    cuda_module module;
    cuda_context context;
    cuda_device_ptr words, sum;
    size_t offset, size;
    int value;
    const char *name;
    uint32_t times = 4, found[WORDS];
    void *parameters[] = {&words, &times};
    OK(cuCtxSetCurrent(NULL));
    EXPECT(CUDA_ERR_INVALID_IMAGE, cuLibraryLoadData(&library, "", NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(CUDA_ERR_INVALID_PTX,
           cuLibraryLoadData(&library, ".version 7.0\n.target sm_70\nnonsense\n", NULL, NULL, 0,
                             NULL, NULL, 0));
    EXPECT(CUDA_ERR_FILE_NOT_FOUND,
           cuLibraryLoadFromFile(&library, "/nonexistent/image", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryLoadData(&library, dropin_kernels, NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(CUDA_ERR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nothing"));
    OK(cuLibraryGetKernel(&kernel, library, "count"));
    OK(cuKernelGetName(&name, kernel));
    CHECK(!strcmp(name, "count"));
    OK(cuKernelGetLibrary(&of, kernel));
    CHECK(of == library);
    OK(cuKernelGetAttribute(&value, CUDA_FUNC_MAX_THREADS_PER_BLOCK, kernel, 0));
    CHECK(value >= 256);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuKernelGetName(&name, NULL));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuLibraryGetModule(&module, library));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuLibraryGetGlobal(&sum, &size, library, "sum"));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuKernelGetFunction(&function, kernel));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuKernelGetParamInfo(kernel, 1, &offset, &size));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc_v2(&words, BYTES));
    OK(cuMemsetD32_v2(words, 1, WORDS));
    OK(cuLibraryGetModule(&module, library));
    OK(cuLibraryGetGlobal(&sum, &size, library, "sum"));
    CHECK(size == 4);
    OK(cuKernelGetParamInfo(kernel, 1, &offset, &size));
    CHECK(offset == 8 && size == 4);
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuLaunchKernel(function, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuLaunchKernel((cuda_function)kernel, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(found, words, BYTES));
    CHECK(found[0] == 9 && found[WORDS - 1] == 9);
    OK(cuMemFree_v2(words));
    OK(cuLibraryUnload(library));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* A hint changes nothing; an attribute that would change what a kernel is gets refused. */
void check_attributes(const struct work *work)
{
    uint32_t times = 1;
    void *parameters[] = {(void *)&work->words, &times};
    struct cuda_launch_attribute attributes[2] = {
        {.id = CUDA_LAUNCH_PRIORITY, .number = -1},
        {.id = CUDA_LAUNCH_CLUSTER_DIMENSION, .cluster = {1, 1, 1}}};
    struct cuda_launch_config config = {
        .grid = {1, 1, 1}, .block = {WORDS, 1, 1}, .attributes = attributes, .attribute_count = 2};
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunchKernelEx(NULL, work->count, parameters, NULL));
    OK(cuMemsetD32_v2(work->words, 0, WORDS));
    OK(cuLaunchKernelEx(&config, work->count, parameters, NULL));
    attributes[1].cluster.x = 2;
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuLaunchKernelEx(&config, work->count, parameters, NULL));
    attributes[1] = (struct cuda_launch_attribute){.id = CUDA_LAUNCH_COOPERATIVE, .number = 1};
    OK(cuLaunchKernelEx(&config, work->count, parameters, NULL));
    config.attributes = NULL;
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunchKernelEx(&config, work->count, parameters, NULL));
    demand(work, 2);
}

static size_t shared_of_block(int threads)
{
    return (size_t)threads * 4;
}

void check_occupancy(const struct work *work)
{
    int grid, block, blocks, multiprocessors, most;
    size_t bytes;
    OK(cuDeviceGetAttribute(&multiprocessors, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0));
    OK(cuDeviceGetAttribute(&most, CUDA_ATTR_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, work->count, NULL, 0, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, work->count, block, 0));
    CHECK(block > 0 && block % 32 == 0 && grid == blocks * multiprocessors);
    CHECK(blocks * block <= most);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, work->count, shared_of_block, 0, 100));
    CHECK(block > 0 && block <= 100);
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuOccupancyMaxPotentialBlockSize(&grid, &block, work->count, NULL, 0, -1));
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, work->count, 2, 64));
    CHECK(bytes > 0);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, work->count, 64, bytes));
    CHECK(blocks >= 2);
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuOccupancyAvailableDynamicSMemPerBlock(&bytes, work->count, 100000, 64));
}

/* As many blocks as the share holds meet, in any form of the launch; one more is refused before
 * anything is launched. */
unsigned check_cooperative(const struct work *work)
{
    enum { BLOCK = 512, ROUNDS = 4 };
    int multiprocessors, blocks, offered;
    cuda_function meet;
    uint32_t found;
    void *parameters[] = {(void *)&work->words};
    struct cuda_launch_attribute attribute = {.id = CUDA_LAUNCH_COOPERATIVE, .number = 1};
    OK(cuDeviceGetAttribute(&offered, CUDA_ATTR_COOPERATIVE_LAUNCH, 0));
    OK(cuDeviceGetAttribute(&multiprocessors, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0));
    OK(cuModuleGetFunction(&meet, work->module, "meet"));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, meet, BLOCK, 0));
    CHECK(offered == 1 && blocks > 0);
    unsigned grid = (unsigned)(blocks * multiprocessors);
    struct cuda_launch_config config = {.grid = {grid, 1, 1},
                                        .block = {BLOCK, 1, 1},
                                        .attributes = &attribute,
                                        .attribute_count = 1};
    OK(cuMemsetD32_v2(work->words, 0, 1));
    for (int i = 0; i < ROUNDS; i++) {
        OK(cuLaunchCooperativeKernel(meet, grid, 1, 1, BLOCK, 1, 1, 0, NULL, parameters));
        OK(cuLaunchKernelEx(&config, meet, parameters, NULL));
    }
    OK(cuMemcpyDtoH_v2(&found, work->words, sizeof found));
    CHECK(found == 2 * ROUNDS * grid);
    EXPECT(CUDA_ERR_COOPERATIVE_LAUNCH_TOO_LARGE,
           cuLaunchCooperativeKernel(meet, grid + 1, 1, 1, BLOCK, 1, 1, 0, NULL, parameters));
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuLaunchCooperativeKernel(meet, 1, 1, 1, BLOCK, 1, 1, 0, NULL, NULL));
    OK(cuCtxSynchronize());
    return grid;
}

/* The launch calls of CUDA 2: what they set stays with the kernel, and goes with its module. */
void check_old_launches(const struct work *work)
{
    cuda_module module;
    cuda_function kernel, other;
    cuda_device_ptr words = work->words;
    const float as_float = 1;
    uint32_t bits;
    memcpy(&bits, &as_float, sizeof bits);
    OK(cuModuleLoadData(&module, dropin_kernels));
    OK(cuModuleGetFunction(&kernel, module, "count"));
    OK(cuModuleGetFunction(&other, module, "stray"));
    OK(cuMemsetD32_v2(words, 7, WORDS));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunch(kernel)); /* it has no block yet */
    EXPECT(CUDA_ERR_INVALID_HANDLE, cuLaunch(NULL));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuFuncSetBlockShape(kernel, WORDS, 0, 1));
    OK(cuFuncSetBlockShape(kernel, WORDS, 1, 1));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunch(kernel)); /* nor parameters */
    OK(cuParamSetSize(kernel, 12));
    OK(cuParamSetv(kernel, 0, &words, sizeof words));
    OK(cuParamSeti(kernel, 8, 2));
    OK(cuLaunch(kernel));
    demand(work, 9);
    OK(cuParamSeti(kernel, 8, 1));
    OK(cuLaunchGrid(kernel, 3, 2));
    demand(work, 15);
    OK(cuParamSetf(kernel, 8, as_float));
    OK(cuFuncSetSharedSize(kernel, 512));
    OK(cuLaunchGridAsync(kernel, 1, 1, CUDA_STREAM_PER_THREAD));
    OK(cuCtxSynchronize());
    demand(work, 15 + bits);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunchGrid(kernel, 0, 1));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuParamSetSize(kernel, 4097));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuParamSeti(kernel, 4093, 1));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuParamSeti(kernel, -1, 1));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuParamSetv(kernel, 0, NULL, 4));
    OK(cuParamSetv(kernel, 4096, &words, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunch(other));
    OK(cuFuncSetSharedSize(kernel, 1 << 30));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunch(kernel));
    demand(work, 15 + bits);
    OK(cuModuleUnload(module));
}
