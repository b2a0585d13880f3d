/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Pointers: their allocations and attributes. */
#include <stdint.h>
#include <string.h>

#include "client/cuda/driver/base/driver_context.h"
#include "client/cuda/driver/base/driver_pool.h"
#include "client/cuda/driver/base/driver_registered.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/engine/connection.h"

/* Gives the allocation of any device that holds the address, or registered memory as a host buffer
 * of the first one. */
static bool find(cuda_device_ptr ptr, struct allocation *found, struct driver_device **device)
{
    *found = (struct allocation){.kind = ALLOCATION_HOST};
    if (driver_registered_find(ptr, &found->address, &found->asked)) {
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

/* All memory of the host has these flags, whatever was asked for. */
cuda_result cuMemHostGetFlags(unsigned *flags, void *host)
{
    struct allocation found;
    struct driver_device *device;
    if (!flags || driver_device_count() < 0)
        return flags ? CUDA_ERR_NOT_INITIALIZED : CUDA_ERR_INVALID_VALUE;
    if (!find((uint64_t)(uintptr_t)host, &found, &device) || found.kind != ALLOCATION_HOST)
        return CUDA_ERR_INVALID_VALUE;
    *flags = CUDA_HOST_ALLOC_PORTABLE |
             (is_registered((uint64_t)(uintptr_t)host) ? 0 : CUDA_HOST_ALLOC_DEVICEMAP);
    return CUDA_OK;
}

/* ---- attributes ---- */

/* The bytes of an attribute's value; 0 for one that is not answered. */
static size_t size_of(cuda_pointer_attribute attribute)
{
    switch (attribute) {
    case CUDA_POINTER_MEMORY_TYPE:
    case CUDA_POINTER_DEVICE_ORDINAL:
    case CUDA_POINTER_ACCESS_FLAGS:
        return sizeof(int);
    case CUDA_POINTER_CONTEXT:
    case CUDA_POINTER_HOST_POINTER:
    case CUDA_POINTER_DEVICE_POINTER:
    case CUDA_POINTER_RANGE_START_ADDR:
    case CUDA_POINTER_RANGE_SIZE:
    case CUDA_POINTER_BUFFER_ID:
    case CUDA_POINTER_ALLOWED_HANDLE_TYPES:
    case CUDA_POINTER_MEMPOOL_HANDLE:
    case CUDA_POINTER_MAPPING_SIZE:
    case CUDA_POINTER_MAPPING_BASE_ADDR:
    case CUDA_POINTER_MEMORY_BLOCK_ID:
        return sizeof(uint64_t);
    case CUDA_POINTER_IS_MANAGED:
    case CUDA_POINTER_MAPPED:
    case CUDA_POINTER_SYNC_MEMOPS:
    case CUDA_POINTER_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CUDA_POINTER_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CUDA_POINTER_IS_HW_DECOMPRESS_CAPABLE:
        return sizeof(char);
    default:
        return 0;
    }
}

/* The machines that are served write the lowest byte of a number first. */
static cuda_result give(void *data, cuda_pointer_attribute attribute, uint64_t value)
{
    memcpy(data, &value, size_of(attribute));
    return CUDA_OK;
}

/* Of an address that is nobody's: as cuPointerGetAttributes has it, which is no error there. */
static cuda_result attribute_of_nothing(void *data, cuda_pointer_attribute attribute)
{
    enum { DEVICE_INVALID = -2 }; /* CU_DEVICE_INVALID */
    if (!size_of(attribute))
        return CUDA_ERR_NOT_SUPPORTED;
    return give(data, attribute,
                attribute == CUDA_POINTER_DEVICE_ORDINAL ? (uint64_t)DEVICE_INVALID : 0);
}

static uint64_t pool_of(cuda_device_ptr ptr)
{
    struct memory_pool *pool = driver_pool_of(ptr);
    return pool ? (uint64_t)(uintptr_t)driver_pool_handle(pool) : 0;
}

/* Memory of both sides lies in the host's, and CUDA calls it the device's. */
static int type_of(const struct allocation *found)
{
    return found->kind == ALLOCATION_HOST ? CUDA_MEMORYTYPE_HOST : CUDA_MEMORYTYPE_DEVICE;
}

static cuda_result attribute_of(void *data, cuda_pointer_attribute attribute, cuda_device_ptr ptr,
                                const struct allocation *found, const struct driver_device *device)
{
    cuda_context context;
    bool on_host = found->kind == ALLOCATION_HOST || found->kind == ALLOCATION_MANAGED;
    switch (attribute) {
    case CUDA_POINTER_CONTEXT:
        DRIVER_TRY(driver_context_primary(device->ordinal, &context));
        return give(data, attribute, (uint64_t)(uintptr_t)context);
    case CUDA_POINTER_MEMORY_TYPE:
        return give(data, attribute, (uint64_t)type_of(found));
    case CUDA_POINTER_DEVICE_POINTER:
        return is_registered(ptr) ? CUDA_ERR_INVALID_VALUE : give(data, attribute, ptr);
    case CUDA_POINTER_HOST_POINTER:
        return on_host ? give(data, attribute, ptr) : CUDA_ERR_INVALID_VALUE;
    case CUDA_POINTER_IS_MANAGED:
        return give(data, attribute, found->kind == ALLOCATION_MANAGED);
    case CUDA_POINTER_DEVICE_ORDINAL:
        return give(data, attribute, (uint64_t)device->ordinal);
    case CUDA_POINTER_RANGE_START_ADDR:
    case CUDA_POINTER_MAPPING_BASE_ADDR:
        return give(data, attribute, found->address);
    case CUDA_POINTER_RANGE_SIZE:
    case CUDA_POINTER_MAPPING_SIZE:
        return give(data, attribute, found->asked);
    case CUDA_POINTER_MAPPED:
        return give(data, attribute, !is_registered(ptr));
    case CUDA_POINTER_BUFFER_ID:
    case CUDA_POINTER_MEMORY_BLOCK_ID:
        /* Registered memory has no number. */
        return found->id ? give(data, attribute, found->id) : CUDA_ERR_NOT_SUPPORTED;
    case CUDA_POINTER_ACCESS_FLAGS:
        return give(data, attribute, CUDA_MEM_ACCESS_READWRITE);
    case CUDA_POINTER_MEMPOOL_HANDLE:
        return give(data, attribute, pool_of(found->address));
    default: /* of ways that are not carried: IPC, peers of other makers */
        return size_of(attribute) ? give(data, attribute, 0) : CUDA_ERR_NOT_SUPPORTED;
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
