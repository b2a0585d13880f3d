/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory, and what is known of a pointer. */
#include <stdint.h>

#include "client/cuda/driver/base/driver_context.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/cuda/driver/base/driver_pool.h"
#include "client/cuda/driver/base/driver_registered.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "common/util.h"

cuda_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    gpushare_connection *connection;
    struct gpushare_memory_info info;
    if (!free_bytes || !total_bytes)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_connection(&connection));
    DRIVER_TRY(driver_result(memory_usage(connection, &info)));
    /* An administrator may set the limit below what is used. */
    *free_bytes = saturating_sub(info.limit, info.used);
    *total_bytes = info.limit;
    return CUDA_OK;
}

cuda_result cuMemAlloc_v2(cuda_device_ptr *ptr, size_t size)
{
    gpushare_connection *connection;
    if (!ptr || !size)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_connection(&connection));
    return driver_result(driver_pool_alloc(connection, size, ptr));
}

cuda_result cuMemAllocPitch_v2(cuda_device_ptr *ptr, size_t *pitch, size_t width, size_t height,
                               unsigned element)
{
    /* Rows begin where NVIDIA's driver would have them begin: at multiples of the texture
     * alignment. */
    enum { ROW_ALIGNMENT = 512 };
    size_t wide, bytes;
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16) ||
        __builtin_add_overflow(width, (size_t)ROW_ALIGNMENT - 1, &wide))
        return CUDA_ERR_INVALID_VALUE;
    wide -= wide % ROW_ALIGNMENT;
    if (__builtin_mul_overflow(wide, height, &bytes))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(cuMemAlloc_v2(ptr, bytes));
    *pitch = wide;
    return CUDA_OK;
}

cuda_result cuMemFree_v2(cuda_device_ptr ptr)
{
    gpushare_connection *connection;
    DRIVER_TRY(driver_context_connection(&connection));
    if (!ptr)
        return CUDA_OK;
    if (!driver_pool_disown(ptr))
        return CUDA_ERR_INVALID_VALUE;
    gpushare_error error = memory_device_free(connection, ptr);
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
    DRIVER_TRY(driver_context_connection(&connection));
    return driver_result(memory_buffer_alloc(connection, size, ptr));
}

cuda_result cuMemAllocHost_v2(void **ptr, size_t size)
{
    return cuMemHostAlloc(ptr, size, 0);
}

cuda_result cuMemFreeHost(void *ptr)
{
    gpushare_connection *connection;
    DRIVER_TRY(driver_context_connection(&connection));
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
    DRIVER_TRY(driver_context_connection(&connection));
    if (flags & CUDA_HOST_REGISTER_IOMEMORY)
        return CUDA_ERR_NOT_SUPPORTED;
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
    DRIVER_TRY(driver_context_connection(&connection));
    return ptr ? driver_registered_remove((uint64_t)(uintptr_t)ptr) : CUDA_ERR_INVALID_VALUE;
}

/* ---- pointers ---- */

/* Gives the allocation of any device that holds the address, or registered memory as a host buffer
 * of the first one. */
static bool find(cuda_device_ptr ptr, struct allocation *found, struct driver_device **device)
{
    if (driver_registered_find(ptr, &found->address, &found->asked)) {
        found->kind = ALLOCATION_HOST;
        return driver_device_get(0, device) == CUDA_OK;
    }
    for (int i = 0; i < driver_device_count(); i++) {
        gpushare_connection *connection;
        if (driver_device_get(i, device) != CUDA_OK)
            return false;
        connection = atomic_load(&(*device)->connection);
        if (connection && allocation_find(&connection->allocations, ptr, found))
            return true;
    }
    return false;
}

/* Registered memory is not mapped for the device. */
static bool is_registered(cuda_device_ptr ptr)
{
    uint64_t start, bytes;
    return driver_registered_find(ptr, &start, &bytes);
}

cuda_result cuMemHostGetDevicePointer_v2(cuda_device_ptr *device_ptr, void *host, unsigned flags)
{
    struct allocation found;
    struct driver_device *device;
    if (!device_ptr || flags)
        return CUDA_ERR_INVALID_VALUE;
    if (is_registered((uint64_t)(uintptr_t)host))
        return CUDA_ERR_NOT_SUPPORTED;
    if (!find((uint64_t)(uintptr_t)host, &found, &device) || found.kind != ALLOCATION_HOST)
        return CUDA_ERR_INVALID_VALUE;
    *device_ptr = (uint64_t)(uintptr_t)host;
    return CUDA_OK;
}

cuda_result cuMemGetAddressRange_v2(cuda_device_ptr *base, size_t *size, cuda_device_ptr ptr)
{
    struct allocation found;
    struct driver_device *device;
    if (driver_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (!find(ptr, &found, &device))
        return CUDA_ERR_NOT_FOUND;
    if (base)
        *base = found.address;
    if (size)
        *size = found.asked;
    return CUDA_OK;
}

/* Of an address that is nobody's: as cuPointerGetAttributes has it, which is no error there. */
static cuda_result attribute_of_nothing(void *data, cuda_pointer_attribute attribute)
{
    switch (attribute) {
    case CUDA_POINTER_MEMORY_TYPE:
        *(unsigned *)data = 0;
        return CUDA_OK;
    case CUDA_POINTER_DEVICE_ORDINAL:
        *(int *)data = -2; /* CU_DEVICE_INVALID */
        return CUDA_OK;
    case CUDA_POINTER_CONTEXT:
    case CUDA_POINTER_HOST_POINTER:
        *(void **)data = NULL;
        return CUDA_OK;
    case CUDA_POINTER_DEVICE_POINTER:
    case CUDA_POINTER_RANGE_START_ADDR:
    case CUDA_POINTER_RANGE_SIZE:
        *(uint64_t *)data = 0;
        return CUDA_OK;
    case CUDA_POINTER_IS_MANAGED:
    case CUDA_POINTER_MAPPED:
        *(char *)data = 0;
        return CUDA_OK;
    default:
        return CUDA_ERR_NOT_SUPPORTED;
    }
}

static cuda_result attribute_of(void *data, cuda_pointer_attribute attribute, cuda_device_ptr ptr,
                                const struct allocation *found, const struct driver_device *device)
{
    cuda_context context;
    switch (attribute) {
    case CUDA_POINTER_CONTEXT:
        DRIVER_TRY(driver_context_primary(device->ordinal, &context));
        *(cuda_context *)data = context;
        return CUDA_OK;
    case CUDA_POINTER_MEMORY_TYPE:
        *(unsigned *)data =
            found->kind == ALLOCATION_HOST ? CUDA_MEMORYTYPE_HOST : CUDA_MEMORYTYPE_DEVICE;
        return CUDA_OK;
    case CUDA_POINTER_DEVICE_POINTER:
        if (is_registered(ptr))
            return CUDA_ERR_INVALID_VALUE;
        *(cuda_device_ptr *)data = ptr;
        return CUDA_OK;
    case CUDA_POINTER_HOST_POINTER:
        if (found->kind != ALLOCATION_HOST)
            return CUDA_ERR_INVALID_VALUE;
        *(uint64_t *)data = ptr;
        return CUDA_OK;
    case CUDA_POINTER_IS_MANAGED:
        *(char *)data = 0;
        return CUDA_OK;
    case CUDA_POINTER_DEVICE_ORDINAL:
        *(int *)data = device->ordinal;
        return CUDA_OK;
    case CUDA_POINTER_RANGE_START_ADDR:
        *(cuda_device_ptr *)data = found->address;
        return CUDA_OK;
    case CUDA_POINTER_RANGE_SIZE:
        *(size_t *)data = found->asked;
        return CUDA_OK;
    case CUDA_POINTER_MAPPED:
        *(char *)data = !is_registered(ptr);
        return CUDA_OK;
    default:
        return CUDA_ERR_NOT_SUPPORTED;
    }
}

cuda_result cuPointerGetAttribute(void *data, cuda_pointer_attribute attribute, cuda_device_ptr ptr)
{
    struct allocation found;
    struct driver_device *device;
    if (driver_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (!data || !find(ptr, &found, &device))
        return CUDA_ERR_INVALID_VALUE;
    return attribute_of(data, attribute, ptr, &found, device);
}

cuda_result cuPointerGetAttributes(unsigned count, cuda_pointer_attribute *attributes, void **data,
                                   cuda_device_ptr ptr)
{
    struct allocation found;
    struct driver_device *device;
    if (driver_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (!attributes || !data)
        return CUDA_ERR_INVALID_VALUE;
    bool known = find(ptr, &found, &device);
    for (unsigned i = 0; i < count; i++) {
        cuda_result result = known ? attribute_of(data[i], attributes[i], ptr, &found, device)
                                   : attribute_of_nothing(data[i], attributes[i]);
        /* An attribute that the pointer does not have is empty, and no error of this call. */
        if (result == CUDA_ERR_INVALID_VALUE)
            result = attribute_of_nothing(data[i], attributes[i]);
        DRIVER_TRY(result);
    }
    return CUDA_OK;
}
