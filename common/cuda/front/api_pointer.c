/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Pointers: their allocations and attributes. */
#include <stdint.h>
#include <string.h>

#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/driver_pool.h"
#include "common/cuda/front/front.h"
#include "common/cuda/sync_memory.h"

cuda_result cuMemHostGetDevicePointer_v2(cuda_device_ptr *device_ptr, void *host, unsigned flags)
{
    struct front_memory found;
    if (!device_ptr || flags)
        return CUDA_ERR_INVALID_VALUE;
    if (!front_memory_find((uint64_t)(uintptr_t)host, &found) || found.kind != FRONT_HOST)
        return CUDA_ERR_INVALID_VALUE;
    if (!found.mapped)
        return DRIVER_ABSENT_CASE(
            "cuMemHostGetDevicePointer of memory that cuMemHostRegister registered");
    *device_ptr = (uint64_t)(uintptr_t)host;
    return CUDA_OK;
}

cuda_result cuMemGetAddressRange_v2(cuda_device_ptr *base, size_t *size, cuda_device_ptr ptr)
{
    struct front_memory found;
    if (front_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (!front_memory_find(ptr, &found))
        return CUDA_ERR_NOT_FOUND;
    if (base)
        *base = found.address;
    if (size)
        *size = found.bytes;
    return CUDA_OK;
}

/* All memory of the host has these flags, whatever was asked for. */
cuda_result cuMemHostGetFlags(unsigned *flags, void *host)
{
    struct front_memory found;
    if (!flags || front_device_count() < 0)
        return flags ? CUDA_ERR_NOT_INITIALIZED : CUDA_ERR_INVALID_VALUE;
    if (!front_memory_find((uint64_t)(uintptr_t)host, &found) || found.kind != FRONT_HOST)
        return CUDA_ERR_INVALID_VALUE;
    *flags = CUDA_HOST_ALLOC_PORTABLE | (found.mapped ? CUDA_HOST_ALLOC_DEVICEMAP : 0);
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

/* CUDA calls memory of both sides the device's. */
static int type_of(const struct front_memory *found)
{
    return found->kind == FRONT_HOST ? CUDA_MEMORYTYPE_HOST : CUDA_MEMORYTYPE_DEVICE;
}

static struct sync_memory sync_of(const struct front_memory *found)
{
    return (struct sync_memory){found->address, found->bytes, found->id};
}

static cuda_result attribute_of(void *data, cuda_pointer_attribute attribute, cuda_device_ptr ptr,
                                const struct front_memory *found)
{
    cuda_context context;
    const struct sync_memory sync = sync_of(found);
    bool on_host = found->kind == FRONT_HOST || found->kind == FRONT_MANAGED;
    switch (attribute) {
    case CUDA_POINTER_CONTEXT:
        DRIVER_TRY(driver_context_of_object(found->device, &context));
        return give(data, attribute, (uint64_t)(uintptr_t)context);
    case CUDA_POINTER_MEMORY_TYPE:
        return give(data, attribute, (uint64_t)type_of(found));
    case CUDA_POINTER_DEVICE_POINTER:
        return found->mapped ? give(data, attribute, ptr) : CUDA_ERR_INVALID_VALUE;
    case CUDA_POINTER_HOST_POINTER:
        return on_host ? give(data, attribute, ptr) : CUDA_ERR_INVALID_VALUE;
    case CUDA_POINTER_IS_MANAGED:
        return give(data, attribute, found->kind == FRONT_MANAGED);
    case CUDA_POINTER_SYNC_MEMOPS:
        return give(data, attribute, sync_memory_is_set(&sync));
    case CUDA_POINTER_DEVICE_ORDINAL:
        return give(data, attribute, (uint64_t)found->device);
    case CUDA_POINTER_RANGE_START_ADDR:
    case CUDA_POINTER_MAPPING_BASE_ADDR:
        return give(data, attribute, found->address);
    case CUDA_POINTER_RANGE_SIZE:
    case CUDA_POINTER_MAPPING_SIZE:
        return give(data, attribute, found->bytes);
    case CUDA_POINTER_MAPPED:
        return give(data, attribute, found->mapped);
    case CUDA_POINTER_BUFFER_ID:
    case CUDA_POINTER_MEMORY_BLOCK_ID:
        /* Not all registered memory has a number. */
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
    struct front_memory found;
    if (front_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (!data || !front_memory_find(ptr, &found))
        return CUDA_ERR_INVALID_VALUE;
    return attribute_of(data, attribute, ptr, &found);
}

/* The only attribute that CUDA lets a program set. */
cuda_result cuPointerSetAttribute(const void *value, cuda_pointer_attribute attribute,
                                  cuda_device_ptr ptr)
{
    struct front_memory found;
    unsigned on;
    DRIVER_TRY(front_check());
    if (!value || attribute != CUDA_POINTER_SYNC_MEMOPS || !front_memory_find(ptr, &found))
        return CUDA_ERR_INVALID_VALUE;
    memcpy(&on, value, sizeof on);
    const struct sync_memory sync = sync_of(&found);
    return sync_memory_set(&sync, on) < 0 ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}

cuda_result cuPointerGetAttributes(unsigned count, cuda_pointer_attribute *attributes, void **data,
                                   cuda_device_ptr ptr)
{
    struct front_memory found;
    if (front_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (!attributes || !data)
        return CUDA_ERR_INVALID_VALUE;
    bool known = front_memory_find(ptr, &found);
    for (unsigned i = 0; i < count; i++) {
        cuda_result result = known ? attribute_of(data[i], attributes[i], ptr, &found)
                                   : attribute_of_nothing(data[i], attributes[i]);
        /* An attribute that the pointer does not have is empty, and no error of this call. */
        if (result == CUDA_ERR_INVALID_VALUE)
            result = attribute_of_nothing(data[i], attributes[i]);
        DRIVER_TRY(result);
    }
    return CUDA_OK;
}
