/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Calls that no other part makes. Compiled once for each release: CUDA 12 has more of them. */
#include <string.h>

#include "tests/programs/cudart/cudart.h"

#ifndef RELEASE
#define RELEASE 13
#endif

enum { BYTES = 1 << 16 };

static void check_kernels(const char *kernel)
{
    enum { MAX_DYNAMIC_SHARED = 8 };
    int blocks = 0, other = 0;

    EXPECT(0, cudaFuncSetAttribute(kernel, MAX_DYNAMIC_SHARED, 1024));
    CHECK(cudaFuncSetAttribute(kernel, MAX_DYNAMIC_SHARED, 1 << 30) != 0);
    EXPECT(0, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0));
    CHECK(blocks >= 1);
    EXPECT(0, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&other, kernel, 128, 0, 1));
    CHECK(other == blocks);
    EXPECT(CUDART_INVALID_VALUE,
           cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&other, kernel, 128, 0, 2));
    CHECK(__cudaInitModule(NULL) == 0);
#if RELEASE == 13
    size_t parameters = 0;
    EXPECT(0, cudaFuncGetParamCount(kernel, &parameters));
    CHECK(parameters == 4);
#endif
    (void)cudaGetLastError();
}

static void check_symbol(void)
{
    const float eleven = 11;
    float found = 0, before = 0;
    void *place = NULL;
    size_t size = 0;

    EXPECT(0, cudaGetSymbolSize(&size, &scale));
    CHECK(size == sizeof(float));
    EXPECT(0, cudaGetSymbolAddress(&place, &scale));
    EXPECT(0, cudaMemcpy(&before, place, size, CUDART_DEVICE_TO_HOST));
    EXPECT(0, cudaMemcpy(place, &eleven, size, CUDART_HOST_TO_DEVICE));
    EXPECT(0, cudaMemcpyFromSymbol(&found, &scale, size, 0, CUDART_DEVICE_TO_HOST));
    CHECK(found == eleven);
    EXPECT(0, cudaMemcpy(place, &before, size, CUDART_HOST_TO_DEVICE));
    CHECK(cudaGetSymbolAddress(&place, &found) != 0);
    (void)cudaGetLastError();
}

static void check_device(void)
{
    int version = 0, runtime = 0, value = 77, least = 77, greatest = 77;
    unsigned flags = 0;

    EXPECT(0, cudaDriverGetVersion(&version));
    EXPECT(0, cudaRuntimeGetVersion(&runtime));
    CHECK(version >= runtime - runtime % 1000);
    EXPECT(0, cudaSetDeviceFlags(CUDA_CTX_SCHED_YIELD));
    EXPECT(0, cudaGetDeviceFlags(&flags));
    CHECK((flags & CUDA_CTX_SCHED_MASK) == CUDA_CTX_SCHED_YIELD);
    EXPECT(0, cudaSetDeviceFlags(CUDA_CTX_SCHED_AUTO));
    CHECK(cudaDeviceGetP2PAttribute(&value, 2, 0, 63) != 0);
    EXPECT(0, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least <= 0 && greatest <= least);
    EXPECT(0, cudaDeviceSetSharedMemConfig(1));
    EXPECT(0, cudaProfilerStart());
    EXPECT(0, cudaProfilerStop());
    (void)cudaGetLastError();
}

#if RELEASE == 13
static void note(void *counter)
{
    ++*(int *)counter;
}
#endif

/* A stream of the most urgent priority, which waits for an event of another. */
static void check_order(char *device, char *host)
{
    int least, greatest, priority = 77, device_of = 77;
    cuda_stream stream;
    cuda_event event;

    EXPECT(0, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(0, cudaStreamCreateWithPriority(&stream, 1 /* non-blocking */, greatest));
    EXPECT(0, cudaStreamGetPriority(stream, &priority));
    CHECK(priority == greatest);
    EXPECT(0, cudaStreamGetDevice(stream, &device_of));
    CHECK(device_of == 0);
    EXPECT(CUDART_INVALID_VALUE, cudaStreamGetDevice(stream, NULL));
    device_of = 77;
    EXPECT(0, cudaStreamGetDevice_ptsz(NULL, &device_of));
    CHECK(device_of == 0);
#if RELEASE == 13
    EXPECT(0, cudaLaunchHostFunc_v2(stream, note, &device_of, 1));
    EXPECT(0, cudaStreamSynchronize(stream));
    EXPECT(0, cudaLaunchHostFunc_v2_ptsz(NULL, note, &device_of, 0));
    EXPECT(0, cudaStreamSynchronize(CUDA_STREAM_PER_THREAD));
    CHECK(device_of == 2);
    EXPECT(CUDART_INVALID_VALUE, cudaLaunchHostFunc_v2(stream, note, &device_of, 2));
#endif
    EXPECT(0, cudaEventCreateWithFlags(&event, CUDA_EVENT_DISABLE_TIMING));
    EXPECT(0, cudaMemset(device, 9, BYTES));
    EXPECT(0, cudaEventRecord(event, NULL));
    EXPECT(0, cudaStreamWaitEvent(stream, event, 0));
    EXPECT(0, cudaMemcpyAsync(host, device, BYTES, CUDART_DEVICE_TO_HOST, stream));
    EXPECT(0, cudaStreamSynchronize(stream));
    EXPECT(0, cudaStreamQuery(stream));
    CHECK(host[0] == 9 && host[BYTES - 1] == 9);
    EXPECT(0, cudaEventDestroy(event));
    EXPECT(0, cudaStreamDestroy(stream));
}

static void check_memory(void)
{
    static char page[2 * 4096] __attribute__((aligned(4096)));
    static char host[BYTES];
    const cuda_mem_access_desc map = {.location = {CUDA_MEM_LOCATION_DEVICE, 0},
                                      .flags = CUDA_MEM_ACCESS_READWRITE};
    cuda_mem_location place = {CUDA_MEM_LOCATION_DEVICE, 0};
    cuda_mem_access access = (cuda_mem_access)0;
    cuda_mem_pool pool = NULL;
    void *device = NULL, *managed = NULL;

    EXPECT(0, cudaHostRegister(page, sizeof page, 0));
    EXPECT(0, cudaHostUnregister(page));
    CHECK(cudaHostUnregister(page) != 0);
    EXPECT(0, cudaDeviceGetDefaultMemPool(&pool, 0));
    EXPECT(0, cudaMemPoolSetAccess(pool, &map, 1));
    EXPECT(0, cudaMemPoolGetAccess(&access, pool, &place));
    CHECK(access == CUDA_MEM_ACCESS_READWRITE);
#if RELEASE == 13
    const cuda_mem_allocation_type pinned = CUDA_MEM_ALLOCATION_PINNED;
    cuda_mem_pool same = NULL;
    EXPECT(0, cudaMemGetDefaultMemPool(&same, &place, pinned));
    CHECK(same == pool);
    EXPECT(0, cudaMemSetMemPool(&place, pinned, pool));
    EXPECT(0, cudaMemGetMemPool(&same, &place, pinned));
    CHECK(same == pool);
#endif
    EXPECT(0, cudaMalloc(&device, BYTES));
    check_order(device, host);
    EXPECT(0, cudaFree(device));
    EXPECT(0, cudaMallocManaged(&managed, BYTES, 1 /* global */));
    EXPECT(0, cudaStreamAttachMemAsync(NULL, managed, 0, 1));
#if RELEASE == 12
    EXPECT(0, cudaMemAdvise_v2(managed, BYTES, 3 /* preferred location */, place));
    EXPECT(0, cudaMemPrefetchAsync_v2(managed, BYTES, place, 0, NULL));
    EXPECT(0, cudaMemPrefetchAsync_v2_ptsz(managed, BYTES, place, 0, NULL));
    EXPECT(CUDART_INVALID_VALUE, cudaMemPrefetchAsync_v2(managed, BYTES, place, 1, NULL));
#endif
    EXPECT(0, cudaDeviceSynchronize());
    EXPECT(0, cudaFree(managed));
    (void)cudaGetLastError();
}

#if RELEASE == 12
static void check_captures(cuda_stream stream)
{
    int status = 77;
    unsigned long long id;
    void *graph;
    const void *dependencies, *edges;
    size_t number;

    EXPECT(0, cudaStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &dependencies, &number));
    CHECK(status == 0);
    status = 77;
    EXPECT(0, cudaStreamGetCaptureInfo_v2_ptsz(NULL, &status, &id, &graph, &dependencies, &number));
    CHECK(status == 0);
    status = 77;
    EXPECT(0, cudaStreamGetCaptureInfo_v3(stream, &status, &id, &graph, &dependencies, &edges,
                                          &number));
    CHECK(status == 0);
    status = 77;
    EXPECT(0, cudaStreamGetCaptureInfo_v3_ptsz(NULL, &status, &id, &graph, &dependencies, &edges,
                                               &number));
    CHECK(status == 0);
}

/* The names that CUDA had before its fourth release. */
static void check_old_names(void)
{
    size_t value = 77, same = 78;
    int config = 77, other = 78;
    cuda_stream stream;
    cuda_event event;
    float milliseconds = -1;

    EXPECT(0, cudaStreamCreate(&stream));
    check_captures(stream);
    EXPECT(0, cudaEventCreate(&event));
    EXPECT(0, cudaEventRecord(event, stream));
    EXPECT(0, cudaThreadSynchronize());
    EXPECT(0, cudaStreamQuery(stream));
    EXPECT(0, cudaEventElapsedTime_v2(&milliseconds, event, event));
    CHECK(milliseconds == 0);
    EXPECT(0, cudaEventDestroy(event));
    EXPECT(0, cudaStreamDestroy(stream));
    CHECK(cudaThreadGetLimit(&value, 0) == cudaDeviceGetLimit(&same, 0));
    CHECK(cudaThreadSetLimit(77, 1) != 0);
    EXPECT(0, cudaThreadSetCacheConfig(1));
    EXPECT(0, cudaThreadGetCacheConfig(&config));
    EXPECT(0, cudaDeviceGetCacheConfig(&other));
    CHECK(config == other);
    (void)cudaGetLastError();
}
#endif

void check_rest(const char *kernel)
{
    check_kernels(kernel);
    check_symbol();
    check_device();
    check_memory();
#if RELEASE == 12
    check_old_names();
#endif
}

/* Each release's own name for it. */
void reset_by_old_name(void)
{
#if RELEASE == 12
    EXPECT(0, cudaThreadExit());
#else
    EXPECT(0, cudaDeviceReset());
#endif
}
