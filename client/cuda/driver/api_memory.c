/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory that is allocated and freed at once. */
#include <stdint.h>

#include "client/cuda/driver/base/driver_connection.h"
#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/driver_pool.h"
#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_registered.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "common/cuda/sync_memory.h"
#include "common/util.h"

cuda_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    gpushare_connection *connection;
    struct gpushare_memory_info info;
    if (!free_bytes || !total_bytes)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_current(&connection));
    DRIVER_TRY(driver_result(memory_usage(connection, &info)));
    /* An administrator may set the limit below what is used. */
    *free_bytes = saturating_sub(info.limit, info.used);
    *total_bytes = info.limit;
    return CUDA_OK;
}

/* If memory is short, the pools' freed blocks are given back first. */
cuda_result cuMemAlloc_v2(cuda_device_ptr *ptr, size_t size)
{
    gpushare_connection *connection;
    if (!ptr || !size)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_current(&connection));
    gpushare_error error = memory_device_alloc(connection, size, ptr);
    if (driver_connection_give_back(connection, error))
        error = memory_device_alloc(connection, size, ptr);
    return driver_result(error);
}

cuda_result cuMemFree_v2(cuda_device_ptr ptr)
{
    gpushare_connection *connection;
    DRIVER_TRY(driver_connection_current(&connection));
    if (!ptr)
        return CUDA_OK;
    if (!driver_pool_disown(ptr))
        return CUDA_ERR_INVALID_VALUE;
    sync_memory_forget(ptr);
    gpushare_error error = memory_device_free(connection, ptr);
    if (error == GPUSHARE_ERROR_INVALID_HANDLE)
        error = memory_managed_free(connection, ptr);
    return error == GPUSHARE_ERROR_INVALID_HANDLE ? CUDA_ERR_INVALID_VALUE : driver_result(error);
}

/* Buffers are at one address on both sides and visible to all, whatever the flags ask for. */
cuda_result cuMemHostAlloc(void **ptr, size_t size, unsigned flags)
{
    const unsigned known =
        CUDA_HOST_ALLOC_PORTABLE | CUDA_HOST_ALLOC_DEVICEMAP | CUDA_HOST_ALLOC_WRITECOMBINED;
    gpushare_connection *connection;
    if (!ptr || !size || (flags & ~known))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_current(&connection));
    return driver_result(memory_buffer_alloc(connection, size, ptr));
}

cuda_result cuMemAllocHost_v2(void **ptr, size_t size)
{
    return cuMemHostAlloc(ptr, size, 0);
}

cuda_result cuMemFreeHost(void *ptr)
{
    gpushare_connection *connection;
    DRIVER_TRY(driver_connection_current(&connection));
    if (!ptr)
        return CUDA_OK;
    gpushare_error error = memory_buffer_free(connection, (uint64_t)(uintptr_t)ptr);
    return error == GPUSHARE_ERROR_INVALID_HANDLE ? CUDA_ERR_INVALID_VALUE : driver_result(error);
}

/* The flags say who may use the memory and how. Copies stage it for everybody. */
cuda_result cuMemHostRegister_v2(void *ptr, size_t size, unsigned flags)
{
    const unsigned known =
        CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP | CUDA_HOST_REGISTER_READ_ONLY;
    gpushare_connection *connection;
    uint64_t address = (uint64_t)(uintptr_t)ptr, end;
    DRIVER_TRY(driver_connection_current(&connection));
    if (flags & CUDA_HOST_REGISTER_IOMEMORY)
        return DRIVER_ABSENT_CASE("cuMemHostRegister of memory of devices");
    if (!ptr || !size || (flags & ~known) || __builtin_add_overflow(address, size, &end))
        return CUDA_ERR_INVALID_VALUE;
    if (memory_classify(connection, address, size) != MEMORY_ORDINARY)
        return CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED;
    const struct driver_device *device = driver_device_of(connection);
    return device ? driver_registered_add(address, size, device->ordinal)
                  : CUDA_ERR_CONTEXT_IS_DESTROYED;
}

cuda_result cuMemHostUnregister(void *ptr)
{
    gpushare_connection *connection;
    DRIVER_TRY(driver_connection_current(&connection));
    return ptr ? driver_registered_remove((uint64_t)(uintptr_t)ptr) : CUDA_ERR_INVALID_VALUE;
}
