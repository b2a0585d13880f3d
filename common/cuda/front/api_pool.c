/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Allocation in the order of streams, and the pools behind it. */
#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_pool.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"

/* ---- memory ---- */

static cuda_result device_of_stream(cuda_stream handle, cuda_device *device)
{
    struct front_stream stream;
    DRIVER_TRY(front_stream_find(handle, &stream));
    *device = stream.device;
    return CUDA_OK;
}

/* Nothing has no address. Unlike cuMemAlloc, NVIDIA's driver gives it out: its own cuda.core
 * allocates nothing from pools. */
static cuda_result allocate(struct memory_pool *pool, cuda_device_ptr *ptr, size_t size,
                            cuda_stream stream)
{
    if (size)
        return memory_pool_alloc(pool, ptr, size, stream);
    *ptr = 0;
    return CUDA_OK;
}

cuda_result cuMemAllocAsync(cuda_device_ptr *ptr, size_t size, cuda_stream stream)
{
    cuda_device device;
    struct memory_pool *pool;
    if (!ptr)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(device_of_stream(stream, &device));
    DRIVER_TRY(driver_pool_current(device, &pool));
    return allocate(pool, ptr, size, stream);
}

/* Each device has addresses of its own, so a stream of another device can't use the memory. */
cuda_result cuMemAllocFromPoolAsync(cuda_device_ptr *ptr, size_t size, cuda_mem_pool handle,
                                    cuda_stream stream)
{
    cuda_device device;
    struct memory_pool *pool;
    if (!ptr)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_pool_check(handle, &pool));
    DRIVER_TRY(device_of_stream(stream, &device));
    if (driver_pool_device(pool) != device)
        return DRIVER_ABSENT_CASE("cuMemAllocFromPoolAsync of another GPU's pool");
    return allocate(pool, ptr, size, stream);
}

cuda_result cuMemFreeAsync(cuda_device_ptr ptr, cuda_stream stream)
{
    cuda_device device;
    struct memory_pool *pool;
    DRIVER_TRY(device_of_stream(stream, &device));
    if (!ptr)
        return CUDA_OK;
    DRIVER_TRY(driver_pool_default(device, &pool));
    return memory_pool_free(pool, ptr, stream);
}

cuda_result cuMemAllocAsync_ptsz(cuda_device_ptr *ptr, size_t size, cuda_stream stream)
{
    return cuMemAllocAsync(ptr, size, front_stream_own(stream));
}

cuda_result cuMemAllocFromPoolAsync_ptsz(cuda_device_ptr *ptr, size_t size, cuda_mem_pool pool,
                                         cuda_stream stream)
{
    return cuMemAllocFromPoolAsync(ptr, size, pool, front_stream_own(stream));
}

cuda_result cuMemFreeAsync_ptsz(cuda_device_ptr ptr, cuda_stream stream)
{
    return cuMemFreeAsync(ptr, front_stream_own(stream));
}

/* ---- pools ---- */

/* Memory that other processes may open is not carried, nor memory of the host. */
cuda_result cuMemPoolCreate(cuda_mem_pool *handle, const cuda_mem_pool_props *props)
{
    cuda_device device;
    struct memory_pool *pool;
    if (!handle || !props)
        return CUDA_ERR_INVALID_VALUE;
    if (front_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (props->type != CUDA_MEM_ALLOCATION_PINNED || props->handle_types != CUDA_MEM_HANDLE_NONE ||
        props->location.type != CUDA_MEM_LOCATION_DEVICE || props->usage)
        return DRIVER_ABSENT_CASE(
            "cuMemPoolCreate of memory that is shared, managed or of the host");
    DRIVER_TRY(cuDeviceGet(&device, props->location.id));
    DRIVER_TRY(driver_pool_create(device, props->max_size, &pool));
    *handle = driver_pool_handle(pool);
    return CUDA_OK;
}

cuda_result cuMemPoolDestroy(cuda_mem_pool handle)
{
    struct memory_pool *pool;
    DRIVER_TRY(driver_pool_check(handle, &pool));
    return driver_pool_destroy(pool);
}

cuda_result cuMemPoolTrimTo(cuda_mem_pool handle, size_t least)
{
    struct memory_pool *pool;
    DRIVER_TRY(driver_pool_check(handle, &pool));
    memory_pool_trim(pool, least);
    return CUDA_OK;
}

/* The attributes of the ways of reuse are of 32 bits, and the others of 64. */
cuda_result cuMemPoolGetAttribute(cuda_mem_pool handle, int attribute, void *value)
{
    struct memory_pool *pool;
    uint64_t found;
    DRIVER_TRY(driver_pool_check(handle, &pool));
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(memory_pool_get(pool, attribute, &found));
    if (attribute <= MEMORY_POOL_REUSE_INTERNAL)
        *(int *)value = (int)found;
    else
        *(uint64_t *)value = found;
    return CUDA_OK;
}

cuda_result cuMemPoolSetAttribute(cuda_mem_pool handle, int attribute, void *value)
{
    struct memory_pool *pool;
    DRIVER_TRY(driver_pool_check(handle, &pool));
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    return memory_pool_set(pool, attribute,
                           attribute <= MEMORY_POOL_REUSE_INTERNAL
                               ? (uint64_t)(*(const int *)value != 0)
                               : *(const uint64_t *)value);
}

/* The pool's own device has access for good, and no other can have any. */
cuda_result cuMemPoolSetAccess(cuda_mem_pool handle, const cuda_mem_access_desc *map, size_t count)
{
    struct memory_pool *pool;
    DRIVER_TRY(driver_pool_check(handle, &pool));
    if (!map && count)
        return CUDA_ERR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        bool own = map[i].location.type == CUDA_MEM_LOCATION_DEVICE &&
                   map[i].location.id == driver_pool_device(pool);
        if (own && map[i].flags != CUDA_MEM_ACCESS_READWRITE)
            return CUDA_ERR_INVALID_DEVICE;
        if (!own && map[i].flags != CUDA_MEM_ACCESS_NONE)
            return DRIVER_ABSENT_CASE("cuMemPoolSetAccess of other GPUs");
    }
    return CUDA_OK;
}

cuda_result cuMemPoolGetAccess(cuda_mem_access *flags, cuda_mem_pool handle,
                               cuda_mem_location *location)
{
    struct memory_pool *pool;
    DRIVER_TRY(driver_pool_check(handle, &pool));
    if (!flags || !location)
        return CUDA_ERR_INVALID_VALUE;
    *flags = location->type == CUDA_MEM_LOCATION_DEVICE && location->id == driver_pool_device(pool)
                 ? CUDA_MEM_ACCESS_READWRITE
                 : CUDA_MEM_ACCESS_NONE;
    return CUDA_OK;
}

/* ---- the pools of a device ---- */

cuda_result cuDeviceGetDefaultMemPool(cuda_mem_pool *handle, cuda_device ordinal)
{
    cuda_device device;
    struct memory_pool *pool;
    DRIVER_TRY(cuDeviceGet(&device, ordinal));
    if (!handle)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_pool_default(device, &pool));
    *handle = driver_pool_handle(pool);
    return CUDA_OK;
}

cuda_result cuDeviceGetMemPool(cuda_mem_pool *handle, cuda_device ordinal)
{
    cuda_device device;
    struct memory_pool *pool;
    DRIVER_TRY(cuDeviceGet(&device, ordinal));
    if (!handle)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_pool_current(device, &pool));
    *handle = driver_pool_handle(pool);
    return CUDA_OK;
}

cuda_result cuDeviceSetMemPool(cuda_device ordinal, cuda_mem_pool handle)
{
    cuda_device device;
    struct memory_pool *pool;
    DRIVER_TRY(cuDeviceGet(&device, ordinal));
    DRIVER_TRY(driver_pool_check(handle, &pool));
    if (driver_pool_device(pool) != device)
        return CUDA_ERR_INVALID_VALUE;
    driver_pool_make_current(device, pool);
    return CUDA_OK;
}

static cuda_result check_location(const cuda_mem_location *location, cuda_mem_allocation_type type)
{
    if (!location)
        return CUDA_ERR_INVALID_VALUE;
    return location->type == CUDA_MEM_LOCATION_DEVICE && type == CUDA_MEM_ALLOCATION_PINNED
               ? CUDA_OK
               : DRIVER_ABSENT_CASE("cuMemGetMemPool of memory that is managed or of the host");
}

cuda_result cuMemGetDefaultMemPool(cuda_mem_pool *handle, cuda_mem_location *location,
                                   cuda_mem_allocation_type type)
{
    DRIVER_TRY(check_location(location, type));
    return cuDeviceGetDefaultMemPool(handle, location->id);
}

cuda_result cuMemGetMemPool(cuda_mem_pool *handle, cuda_mem_location *location,
                            cuda_mem_allocation_type type)
{
    DRIVER_TRY(check_location(location, type));
    return cuDeviceGetMemPool(handle, location->id);
}

cuda_result cuMemSetMemPool(cuda_mem_location *location, cuda_mem_allocation_type type,
                            cuda_mem_pool pool)
{
    DRIVER_TRY(check_location(location, type));
    return cuDeviceSetMemPool(location->id, pool);
}
