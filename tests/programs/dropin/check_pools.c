/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Allocation in the order of streams, and the pools behind it. */
#include <pthread.h>
#include <stdint.h>

#include "common/cuda/memory_pool.h"
#include "tests/programs/dropin/dropin.h"

enum { SIZE = 3 << 20 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static uint64_t value_of(cuda_mem_pool pool, int attribute)
{
    uint64_t value = 77;
    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void set(cuda_mem_pool pool, int attribute, uint64_t value)
{
    OK(cuMemPoolSetAttribute(pool, attribute, &value));
}

/* A freed block is given out again where the order of streams allows it, and nowhere else. */
static void check_order_of_streams(cuda_mem_pool pool, cuda_stream stream, cuda_stream other)
{
    cuda_device_ptr first, second, third;
    first = second = 77;
    OK(cuMemAllocAsync(&first, 0, stream));
    OK(cuMemAllocFromPoolAsync(&second, 0, pool, stream));
    CHECK(first == 0 && second == 0);
    OK(cuMemAllocAsync(&first, SIZE, stream));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFreeAsync(first + 1, stream));
    pthread_mutex_lock(&gate);
    OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    OK(cuMemsetD8Async(first, 1, SIZE, stream));
    OK(cuMemFreeAsync(first, stream));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFreeAsync(first, other));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFree_v2(first));
    OK(cuMemAllocAsync(&second, SIZE, other));
    CHECK(second != first);
    OK(cuMemAllocAsync(&third, SIZE, stream));
    CHECK(third == first);
    CHECK(value_of(pool, MEMORY_POOL_USED_CURRENT) == 2 * SIZE);
    pthread_mutex_unlock(&gate);
    OK(cuMemFreeAsync(third, stream));
    OK(cuMemFreeAsync(second, other));
    OK(cuMemFreeAsync(0, other));
    OK(cuStreamSynchronize(stream));
    OK(cuStreamSynchronize(other));
    CHECK(value_of(pool, MEMORY_POOL_RESERVED_CURRENT) == 0);
    CHECK(value_of(pool, MEMORY_POOL_RESERVED_HIGH) == 2 * SIZE);
}

/* A pool below its threshold keeps blocks, and they go where memory is short. */
static void check_threshold(cuda_mem_pool pool, cuda_stream stream)
{
    size_t free_bytes, total;
    cuda_device_ptr large, other;
    OK(cuMemGetInfo_v2(&free_bytes, &total));
    set(pool, MEMORY_POOL_RELEASE_THRESHOLD, UINT64_MAX);
    OK(cuMemAllocAsync(&large, free_bytes / 4 * 3, stream));
    OK(cuMemFreeAsync(large, stream));
    OK(cuCtxSynchronize());
    CHECK(value_of(pool, MEMORY_POOL_RESERVED_CURRENT) == free_bytes / 4 * 3);
    OK(cuMemAlloc_v2(&other, free_bytes / 3 * 2));
    CHECK(value_of(pool, MEMORY_POOL_RESERVED_CURRENT) == 0);
    OK(cuMemFree_v2(other));
    OK(cuMemAllocAsync(&other, SIZE, stream));
    OK(cuMemFreeAsync(other, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(value_of(pool, MEMORY_POOL_RESERVED_CURRENT) == SIZE);
    OK(cuMemPoolTrimTo(pool, SIZE));
    CHECK(value_of(pool, MEMORY_POOL_RESERVED_CURRENT) == SIZE);
    OK(cuMemPoolTrimTo(pool, 0));
    CHECK(value_of(pool, MEMORY_POOL_RESERVED_CURRENT) == 0);
    set(pool, MEMORY_POOL_RELEASE_THRESHOLD, 0);
    /* Memory of no pool may be freed in a stream's order, and memory of a pool at once. */
    OK(cuMemAlloc_v2(&other, SIZE));
    OK(cuMemFreeAsync(other, stream));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFree_v2(other));
    OK(cuMemAllocAsync(&other, SIZE, stream));
    OK(cuMemFree_v2(other));
    OK(cuCtxSynchronize());
    CHECK(value_of(pool, MEMORY_POOL_USED_CURRENT) == 0);
}

/* A pool of the program's own, with a limit. */
static void check_own_pool(cuda_mem_pool standard, cuda_stream stream)
{
    cuda_mem_pool pool, found;
    cuda_device_ptr ptr, other;
    cuda_mem_access access = CUDA_MEM_ACCESS_NONE;
    int reuse = 77;
    cuda_mem_pool_props props = {.type = CUDA_MEM_ALLOCATION_PINNED,
                                 .location = {CUDA_MEM_LOCATION_DEVICE, 0},
                                 .max_size = 2 * SIZE};
    cuda_mem_access_desc desc = {props.location, CUDA_MEM_ACCESS_READWRITE};
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemPoolSetAccess(pool, &desc, 1));
    OK(cuMemPoolGetAccess(&access, pool, &props.location));
    CHECK(access == CUDA_MEM_ACCESS_READWRITE);
    OK(cuMemPoolGetAttribute(pool, MEMORY_POOL_REUSE_OPPORTUNISTIC, &reuse));
    CHECK(reuse == 1);
    OK(cuMemAllocFromPoolAsync(&ptr, SIZE, pool, stream));
    EXPECT(CUDA_ERR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&other, SIZE + 1, pool, stream));
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuMemGetMemPool(&found, &props.location, CUDA_MEM_ALLOCATION_PINNED));
    CHECK(found == pool);
    OK(cuMemAllocAsync(&other, SIZE, stream));
    CHECK(value_of(pool, MEMORY_POOL_USED_CURRENT) == 2 * SIZE);
    OK(cuMemFreeAsync(ptr, stream));
    /* It ends with its last block, and the default pool is the current one again. */
    OK(cuMemPoolDestroy(pool));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemPoolTrimTo(pool, 0));
    OK(cuDeviceGetMemPool(&found, 0));
    CHECK(found == standard);
    OK(cuMemFreeAsync(other, stream));
    OK(cuStreamSynchronize(stream));
    props.handle_types = CUDA_MEM_HANDLE_POSIX_FD;
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuMemPoolCreate(&pool, &props));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemPoolDestroy(standard));
}

void check_pools(void)
{
    cuda_mem_pool pool, again;
    cuda_stream stream, other;
    size_t before, after, total;
    int supported;
    OK(cuDeviceGetAttribute(&supported, CUDA_ATTR_MEMORY_POOLS_SUPPORTED, 0));
    CHECK(supported == 1);
    OK(cuMemGetInfo_v2(&before, &total));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuDeviceGetMemPool(&again, 0));
    CHECK(pool == again);
    OK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING));
    check_order_of_streams(pool, stream, other);
    check_threshold(pool, stream);
    check_own_pool(pool, stream);
    OK(cuMemAllocAsync_ptsz(&(cuda_device_ptr){0}, SIZE, NULL));
    OK(cuStreamDestroy_v2(stream));
    OK(cuStreamDestroy_v2(other));
    /* Blocks go with the context, and the pool stays. */
    CHECK(value_of(pool, MEMORY_POOL_USED_CURRENT) == SIZE);
    OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK(value_of(pool, MEMORY_POOL_USED_CURRENT) == 0);
    struct work work;
    begin(&work);
    OK(cuMemGetInfo_v2(&after, &total));
    CHECK(after >= before); /* more where a program of before left its memory meanwhile */
    OK(cuDevicePrimaryCtxReset_v2(0));
}
