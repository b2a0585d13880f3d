/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Calls that no other part makes: other versions and forms of a call, hints, and questions. */
#include <string.h>

#include "tests/programs/dropin/dropin.h"

enum { WIDTH = 96, HEIGHT = 10 };

static void check_library(void)
{
    const void *table = &table;
    const cuda_uuid id = {{1}};
    const char *text = NULL;
    int major, minor, value, version = 0;
    EXPECT(CUDA_ERR_NOT_FOUND, cuGetExportTable(&table, &id));
    CHECK(!table);
    OK(cuGetErrorString(CUDA_ERR_INVALID_VALUE, &text));
    CHECK(text && *text);
    OK(cuDriverGetVersion(&version));
    CHECK(version >= 12000);
    OK(cuProfilerStart());
    OK(cuProfilerStop());
    OK(cuDeviceComputeCapability(&major, &minor, 0));
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR, 0));
    CHECK(major == value);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_COMPUTE_CAPABILITY_MINOR, 0));
    CHECK(minor == value);
}

static void check_primary(const struct work *work)
{
    cuda_context again;
    unsigned flags, before;
    int active;
    OK(cuDevicePrimaryCtxGetState(0, &before, &active));
    OK(cuDevicePrimaryCtxSetFlags(0, CUDA_CTX_SCHED_YIELD));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK((flags & CUDA_CTX_SCHED_MASK) == CUDA_CTX_SCHED_YIELD && active);
    OK(cuDevicePrimaryCtxSetFlags(0, before));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(again == work->context);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active);
}

static void check_made_context(void)
{
    cuda_context made, current;
    cuda_device device = 77;
    unsigned version = 0;
    int config = 77;
    OK(cuCtxCreate_v2(&made, CUDA_CTX_SCHED_SPIN, 0));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == made);
    OK(cuCtxGetApiVersion(made, &version));
    CHECK(version == 3020);
    OK(cuCtxGetDevice_v2(&device, made));
    CHECK(device == 0);
    OK(cuCtxGetCacheConfig(&config));
    CHECK(config == 0);
    OK(cuCtxSetSharedMemConfig(2));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuCtxSetSharedMemConfig(3));
    OK(cuCtxGetSharedMemConfig(&config));
    CHECK(config == 1);
    OK(cuCtxSynchronize_v2(made));
    OK(cuCtxDestroy_v2(made));
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuCtxSynchronize_v2(made));
}

/* Each row of WIDTH bytes has this byte. */
static void demand_rows(const char *rows, unsigned first, unsigned end, char byte)
{
    for (unsigned at = first * WIDTH; at < end * WIDTH; at++)
        CHECK(rows[at] == byte);
}

static void check_blocks_and_fills(cuda_stream stream)
{
    cuda_device_ptr ptr;
    size_t pitch;
    static char rows[HEIGHT * WIDTH];
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemAllocPitch_v2(&ptr, &pitch, WIDTH, HEIGHT, 3));
    OK(cuMemAllocPitch_v2(&ptr, &pitch, WIDTH, HEIGHT, 4));
    CHECK(pitch >= WIDTH && pitch % 512 == 0);
    const cuda_memcpy_2d plane = {.src_type = CUDA_MEMORYTYPE_DEVICE,
                                  .src_device = ptr,
                                  .src_pitch = pitch,
                                  .dst_type = CUDA_MEMORYTYPE_HOST,
                                  .dst_host = rows,
                                  .dst_pitch = WIDTH,
                                  .width = WIDTH,
                                  .height = HEIGHT};
    const cuda_memcpy_3d box = {.src_type = CUDA_MEMORYTYPE_DEVICE,
                                .src_device = ptr,
                                .src_pitch = pitch,
                                .src_height = HEIGHT,
                                .dst_type = CUDA_MEMORYTYPE_HOST,
                                .dst_host = rows,
                                .dst_pitch = WIDTH,
                                .dst_height = HEIGHT,
                                .width = WIDTH,
                                .height = HEIGHT,
                                .depth = 1};
    OK(cuMemsetD2D8_v2(ptr, pitch, 0x11, WIDTH, HEIGHT));
    OK(cuMemcpy2DUnaligned_v2(&plane));
    demand_rows(rows, 0, HEIGHT, 0x11);
    OK(cuMemsetD2D8Async(ptr, pitch, 0x22, WIDTH, HEIGHT, stream));
    OK(cuMemsetD2D16Async(ptr, pitch, 0x3333, WIDTH / 2, 6, stream));
    OK(cuMemsetD2D32Async(ptr, pitch, 0x44444444, WIDTH / 4, 3, stream));
    OK(cuMemcpy2DAsync_v2(&plane, stream));
    OK(cuStreamSynchronize(stream));
    demand_rows(rows, 0, 3, 0x44);
    demand_rows(rows, 3, 6, 0x33);
    demand_rows(rows, 6, HEIGHT, 0x22);
    OK(cuMemsetD2D32_v2(ptr, pitch, 0x55555555, WIDTH / 4, HEIGHT));
    OK(cuMemcpy3D_v2(&box));
    demand_rows(rows, 0, HEIGHT, 0x55);
    OK(cuMemsetD16Async(ptr, 0x6666, WIDTH / 2, stream));
    OK(cuMemcpyAsync(ptr + pitch, ptr, WIDTH, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpy2D_v2(&plane));
    demand_rows(rows, 0, 2, 0x66);
    demand_rows(rows, 2, HEIGHT, 0x55);
    OK(cuMemFree_v2(ptr));
}

static void check_pools_of_a_place(void)
{
    cuda_mem_location place = {CUDA_MEM_LOCATION_DEVICE, 0};
    cuda_mem_pool pool = NULL, wanted, current;
    cuda_device_ptr ptr;
    OK(cuMemGetDefaultMemPool(&pool, &place, CUDA_MEM_ALLOCATION_PINNED));
    OK(cuDeviceGetDefaultMemPool(&wanted, 0));
    CHECK(pool == wanted);
    OK(cuMemSetMemPool(&place, CUDA_MEM_ALLOCATION_PINNED, pool));
    OK(cuDeviceGetMemPool(&current, 0));
    CHECK(current == pool);
    OK(cuMemAllocManaged(&ptr, BYTES, 1));
    OK(cuMemPrefetchAsync_v2(ptr, BYTES, place, 0, NULL));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemPrefetchAsync_v2(ptr, BYTES, place, 1, NULL));
    OK(cuMemFree_v2(ptr));
}

static void note_call(void *user)
{
    *(int *)user = 7;
}

static void check_stream_of_priority(void)
{
    cuda_stream stream;
    cuda_event event;
    int least = 77, greatest = 77, priority = 77, status = 77, called = 0;
    uint64_t id;
    void *graph;
    const void *dependencies, *edges;
    size_t number;
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(least <= 0 && greatest <= least);
    OK(cuStreamCreateWithPriority(&stream, CUDA_STREAM_NON_BLOCKING, greatest));
    OK(cuStreamGetPriority(stream, &priority));
    CHECK(priority == greatest);
    OK(cuStreamGetCaptureInfo(stream, &status, &id));
    CHECK(status == 0);
    status = 77;
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &dependencies, &number));
    CHECK(status == 0);
    status = 77;
    OK(cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, &dependencies, &edges, &number));
    CHECK(status == 0);
    OK(cuLaunchHostFunc_v2(stream, note_call, &called, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunchHostFunc_v2(stream, note_call, &called, 2));
    OK(cuEventCreate(&event, CUDA_EVENT_DEFAULT));
    OK(cuEventRecordWithFlags(event, stream, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuEventRecordWithFlags(event, stream, 1));
    OK(cuEventSynchronize(event));
    CHECK(called == 7);
    OK(cuEventDestroy_v2(event));
    check_blocks_and_fills(stream);
    OK(cuStreamDestroy_v2(stream));
}

static void check_modules(const struct work *work)
{
    cuda_module module;
    cuda_function function;
    int state = 77, mode = 77;
    uint32_t times = 1;
    void *parameters[] = {(void *)&work->words, &times};
    OK(cuModuleGetLoadingMode(&mode));
    CHECK(mode == 1);
    OK(cuModuleLoadFatBinary(&module, dropin_kernels));
    OK(cuModuleGetFunction(&function, module, "count"));
    OK(cuFuncLoad(function));
    OK(cuFuncIsLoaded(&state, function));
    CHECK(state == 1);
    OK(cuFuncSetSharedMemConfig(function, 2));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuFuncSetSharedMemConfig(function, 3));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
    OK(cuLaunchKernel(function, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    demand(work, 8);
    OK(cuModuleUnload(module));
}

static void check_kernel_of_a_library(void)
{
    cuda_library library;
    cuda_kernel kernel;
    size_t offset, size, number;
    int value = 0;
    OK(cuLibraryLoadData(&library, dropin_kernels, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "count"));
    OK(cuKernelSetAttribute(CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10, kernel, 0));
    OK(cuKernelGetAttribute(&value, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
    CHECK(value == 64 << 10);
    EXPECT(CUDA_ERR_INVALID_DEVICE,
           cuKernelSetAttribute(CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10, kernel, 1));
    OK(cuKernelGetParamInfo(kernel, 1, &offset, &size));
    CHECK(offset == 8 && size == 4);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuKernelGetParamInfo(kernel, 2, &offset, &size));
    OK(cuKernelGetParamCount(kernel, &number));
    CHECK(number == 2);
    OK(cuKernelSetCacheConfig(kernel, 1, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuKernelSetCacheConfig(kernel, 9, 0));
    OK(cuLibraryUnload(library));
}

static void check_occupancy_with_flags(const struct work *work)
{
    int blocks, wanted, grid, block, other_grid, other_block;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&wanted, work->count, 64, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, work->count, 64, 0, 1));
    CHECK(blocks == wanted);
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, work->count, 64, 0, 2));
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, work->count, NULL, 0, 0));
    OK(cuOccupancyMaxPotentialBlockSizeWithFlags(&other_grid, &other_block, work->count, NULL, 0, 0,
                                                 1));
    CHECK(other_grid == grid && other_block == block);
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, work->count, NULL, 0, 0, 2));
}

void check_rest(struct work *work)
{
    check_library();
    check_primary(work);
    check_made_context();
    check_stream_of_priority();
    check_pools_of_a_place();
    check_modules(work);
    check_kernel_of_a_library();
    check_occupancy_with_flags(work);
    OK(cuDevicePrimaryCtxReset(0));
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    begin(work);
}
