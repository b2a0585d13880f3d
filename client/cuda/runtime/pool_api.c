/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory in a stream's order, and its pools. Handles, numbers and structures are the driver's. */
#include "client/cuda/runtime/base/runtime_context.h"
#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/runtime_exports.h"

cudart_error cudaMallocAsync(void **ptr, size_t size, cuda_stream stream)
{
    cuda_device_ptr allocated = 0;
    cudart_error error;

    ENTER();
    if (!ptr)
        return runtime_error_note(CUDART_INVALID_VALUE);
    error = DRIVER(cuMemAllocAsync, &allocated, size, stream);
    if (error == CUDART_OK)
        *ptr = (void *)(uintptr_t)allocated;
    return runtime_error_note(error);
}

cudart_error cudaMallocFromPoolAsync(void **ptr, size_t size, cuda_mem_pool pool,
                                     cuda_stream stream)
{
    cuda_device_ptr allocated = 0;
    cudart_error error;

    ENTER();
    if (!ptr)
        return runtime_error_note(CUDART_INVALID_VALUE);
    error = DRIVER(cuMemAllocFromPoolAsync, &allocated, size, pool, stream);
    if (error == CUDART_OK)
        *ptr = (void *)(uintptr_t)allocated;
    return runtime_error_note(error);
}

cudart_error cudaFreeAsync(void *ptr, cuda_stream stream)
{
    ENTER();
    if (!ptr)
        return CUDART_OK;
    return runtime_error_note(DRIVER(cuMemFreeAsync, (cuda_device_ptr)(uintptr_t)ptr, stream));
}

/* ---- pools -------------------------------------------------------------------------------- */

cudart_error cudaDeviceGetDefaultMemPool(cuda_mem_pool *pool, int ordinal)
{
    ENTER();
    return runtime_error_note(DRIVER(cuDeviceGetDefaultMemPool, pool, ordinal));
}

cudart_error cudaDeviceGetMemPool(cuda_mem_pool *pool, int ordinal)
{
    ENTER();
    return runtime_error_note(DRIVER(cuDeviceGetMemPool, pool, ordinal));
}

cudart_error cudaDeviceSetMemPool(int ordinal, cuda_mem_pool pool)
{
    ENTER();
    return runtime_error_note(DRIVER(cuDeviceSetMemPool, ordinal, pool));
}

/* The numbers of types are the driver's. */
cudart_error cudaMemGetDefaultMemPool(cuda_mem_pool *pool, cuda_mem_location *location,
                                      cuda_mem_allocation_type type)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemGetDefaultMemPool, pool, location, type));
}

cudart_error cudaMemGetMemPool(cuda_mem_pool *pool, cuda_mem_location *location,
                               cuda_mem_allocation_type type)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemGetMemPool, pool, location, type));
}

cudart_error cudaMemSetMemPool(cuda_mem_location *location, cuda_mem_allocation_type type,
                               cuda_mem_pool pool)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemSetMemPool, location, type, pool));
}

cudart_error cudaMemPoolCreate(cuda_mem_pool *pool, const cuda_mem_pool_props *props)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemPoolCreate, pool, props));
}

cudart_error cudaMemPoolDestroy(cuda_mem_pool pool)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemPoolDestroy, pool));
}

cudart_error cudaMemPoolTrimTo(cuda_mem_pool pool, size_t least)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemPoolTrimTo, pool, least));
}

cudart_error cudaMemPoolGetAttribute(cuda_mem_pool pool, int attribute, void *value)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemPoolGetAttribute, pool, attribute, value));
}

cudart_error cudaMemPoolSetAttribute(cuda_mem_pool pool, int attribute, void *value)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemPoolSetAttribute, pool, attribute, value));
}

cudart_error cudaMemPoolGetAccess(cuda_mem_access *flags, cuda_mem_pool pool,
                                  cuda_mem_location *location)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemPoolGetAccess, flags, pool, location));
}

cudart_error cudaMemPoolSetAccess(cuda_mem_pool pool, const cuda_mem_access_desc *map, size_t count)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemPoolSetAccess, pool, map, count));
}
