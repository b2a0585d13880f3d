/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/array.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/cuda/driver_error.h"
#include "server/worker/device/device_heap.h"
#include "server/worker/device/gpu_arena.h"
#include "common/mps.h"

static int read_attribute(const struct gpu *gpu, cuda_device_attribute which)
{
    int value = 0;
    if (gpu->cuda->cuDeviceGetAttribute(&value, which, gpu->handle) != CUDA_OK)
        return 0;
    return value;
}

static cuda_mem_allocation_prop own_memory(const struct gpu *gpu)
{
    return (cuda_mem_allocation_prop){
        .type = CUDA_MEM_ALLOCATION_PINNED,
        .requested_handle_types = CUDA_MEM_HANDLE_POSIX_FD,
        .location = {.type = CUDA_MEM_LOCATION_DEVICE, .id = gpu->handle},
    };
}

/* Proves that the arena works: maps one granule at its start and reads back what was written. */
static uint32_t prove_device_arena(struct gpu *gpu, struct error *why)
{
    const struct cuda_driver *cuda = gpu->cuda;
    cuda_mem_allocation_prop prop = own_memory(gpu);
    cuda_mem_access_desc access = {.location = prop.location, .flags = CUDA_MEM_ACCESS_READWRITE};
    cuda_mem_handle handle;
    uint32_t written = 0x67707573, read = 0; /* not what untouched memory holds */
    cuda_result result = cuda->cuMemCreate(&handle, gpu->granularity, &prop, 0);
    if (result != CUDA_OK)
        return driver_error_set(why, "cuMemCreate", result);
    result = cuda->cuMemMap(gpu->device_base, gpu->granularity, 0, handle, 0);
    cuda->cuMemRelease(handle);
    if (result != CUDA_OK)
        return driver_error_set(why, "cuMemMap", result);
    result = cuda->cuMemSetAccess(gpu->device_base, gpu->granularity, &access, 1);
    if (result == CUDA_OK)
        result = cuda->cuMemcpyHtoD(gpu->device_base, &written, sizeof written);
    if (result == CUDA_OK)
        result = cuda->cuMemcpyDtoH(&read, gpu->device_base, sizeof read);
    cuda_result unmapped = cuda->cuMemUnmap(gpu->device_base, gpu->granularity);
    if (result == CUDA_OK)
        result = unmapped;
    if (result != CUDA_OK)
        return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(device_arena_use),
                         cuda_driver_error_sentence(result), driver_error_name(result));
    if (read != written)
        return error_set(why, MESSAGE(device_arena_memory));
    return 0;
}

static void describe_limits(struct gpu *gpu, struct proto_device_info *info)
{
    info->multiprocessors = (uint32_t)read_attribute(gpu, CUDA_ATTR_MULTIPROCESSOR_COUNT);
    info->compute_major = (uint32_t)read_attribute(gpu, CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR);
    info->compute_minor = (uint32_t)read_attribute(gpu, CUDA_ATTR_COMPUTE_CAPABILITY_MINOR);
    info->warp_threads = (uint32_t)read_attribute(gpu, CUDA_ATTR_WARP_SIZE);
    info->block_threads = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_THREADS_PER_BLOCK);
    info->block_dimension[0] = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_BLOCK_DIM_X);
    info->block_dimension[1] = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_BLOCK_DIM_Y);
    info->block_dimension[2] = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_BLOCK_DIM_Z);
    info->grid_dimension[0] = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_GRID_DIM_X);
    info->grid_dimension[1] = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_GRID_DIM_Y);
    info->grid_dimension[2] = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_GRID_DIM_Z);
    info->block_shared_bytes = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK);
    info->block_shared_optin_bytes =
        (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    info->multiprocessor_shared_bytes =
        (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    info->multiprocessor_threads =
        (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_THREADS_PER_MULTIPROCESSOR);
    info->block_registers = (uint32_t)read_attribute(gpu, CUDA_ATTR_MAX_REGISTERS_PER_BLOCK);
    info->clock_khz = (uint32_t)read_attribute(gpu, CUDA_ATTR_CLOCK_RATE);
    info->l2_bytes = (uint32_t)read_attribute(gpu, CUDA_ATTR_L2_CACHE_SIZE);
    info->constant_bytes = (uint32_t)read_attribute(gpu, CUDA_ATTR_TOTAL_CONSTANT_MEMORY);
}

static uint32_t describe_device(struct gpu *gpu, int ordinal, struct error *why)
{
    const struct cuda_driver *cuda = gpu->cuda;
    struct proto_device_info *info = &gpu->info;
    int version = 0, least = 0, greatest = 0;
    size_t memory = 0;
    cuda_uuid uuid;
    cuda_result result = cuda->cuDriverGetVersion(&version);
    if (result == CUDA_OK)
        result = cuda->cuDeviceTotalMem(&memory, gpu->handle);
    if (result == CUDA_OK)
        result = cuda->cuDeviceGetUuid(&uuid, gpu->handle);
    if (result == CUDA_OK)
        result = cuda->cuDeviceGetName(info->name, sizeof info->name, gpu->handle);
    if (result == CUDA_OK)
        result = cuda->cuCtxGetStreamPriorityRange(&least, &greatest);
    if (result != CUDA_OK)
        return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(device_description),
                         cuda_driver_error_sentence(result), driver_error_name(result));
    if (cuda->cuDeviceGetPCIBusId(info->pci, sizeof info->pci, gpu->handle) != CUDA_OK)
        info->pci[0] = 0;
    info->name[sizeof info->name - 1] = 0;
    info->pci[sizeof info->pci - 1] = 0;
    info->device = (uint32_t)ordinal;
    info->driver_version = (uint32_t)version;
    info->memory = memory;
    info->granularity = gpu->granularity;
    info->priority_least = least;
    info->priority_greatest = greatest;
    memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
    describe_limits(gpu, info);
    return 0;
}

static uint32_t require_features(struct gpu *gpu, struct error *why)
{
    static const struct {
        cuda_device_attribute attribute;
        const char *text;
    } needed[] = {
        {CUDA_ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, MESSAGE_TEXT(device_no_memory_mapping)},
        {CUDA_ATTR_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
         MESSAGE_TEXT(device_no_memory_descriptors)},
        {CUDA_ATTR_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, MESSAGE_TEXT(device_no_same_address)},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!read_attribute(gpu, needed[i].attribute)) {
            error_set(why, PROTO_ERROR_NOT_SUPPORTED, "%s", needed[i].text);
            why->format = needed[i].text; /* without arguments: the log knows the message by it */
            return why->number;
        }
    return 0;
}

static uint32_t refuse_context(const struct gpu *gpu, cuda_result result, struct error *why)
{
    int mode = read_attribute(gpu, CUDA_ATTR_COMPUTE_MODE);
    pid_t mps = mps_process("/proc");
    char pci[sizeof gpu->info.pci] = "";
    if (gpu->cuda->cuDeviceGetPCIBusId(pci, sizeof pci, gpu->handle) != CUDA_OK)
        snprintf(pci, sizeof pci, "%d", gpu->handle);
    if (mode == CUDA_COMPUTEMODE_PROHIBITED)
        return error_set(why, MESSAGE(device_prohibited), pci, pci);
    if (mode != CUDA_COMPUTEMODE_DEFAULT && result == CUDA_ERR_DEVICE_UNAVAILABLE)
        return mps ? error_set(why, MESSAGE(device_exclusive_mps), pci, (int)mps)
                   : error_set(why, MESSAGE(device_exclusive), pci, pci);
    return driver_error_set(why, "cuDevicePrimaryCtxRetain", result);
}

static uint32_t retain_context(struct gpu *gpu, struct error *why)
{
    /* Threads that wait for the driver sleep instead of taking a core each. A driver that does not
     * know how to is used all the same. */
    gpu->cuda->cuDevicePrimaryCtxSetFlags(gpu->handle, CUDA_CTX_SCHED_BLOCKING_SYNC);
    cuda_result result = gpu->cuda->cuDevicePrimaryCtxRetain(&gpu->context, gpu->handle);
    if (result == CUDA_OK)
        result = gpu->cuda->cuCtxSetCurrent(gpu->context);
    return result == CUDA_OK ? 0 : refuse_context(gpu, result, why);
}

/* Other devices than this one may be shown, if the driver ignores what it was told. */
uint32_t gpu_find_device(const struct cuda_driver *cuda, int ordinal, const uint8_t *uuid,
                         cuda_device *device, struct error *why)
{
    int count = uuid ? 0 : ordinal + 1;
    cuda_result result = uuid ? cuda->cuDeviceGetCount(&count) : CUDA_OK;
    for (int i = uuid ? 0 : ordinal; result == CUDA_OK && i < count; i++) {
        cuda_uuid shown;
        result = cuda->cuDeviceGet(device, i);
        if (result == CUDA_OK && uuid)
            result = cuda->cuDeviceGetUuid(&shown, *device);
        if (result == CUDA_OK && (!uuid || !memcmp(shown.bytes, uuid, sizeof shown.bytes)))
            return 0;
    }
    if (result != CUDA_OK)
        return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(device_search),
                         cuda_driver_error_sentence(result), driver_error_name(result));
    return error_set(why, MESSAGE(device_gone));
}

uint32_t gpu_open_driver(struct gpu *gpu, const struct gpu_options *options, struct error *why)
{
    const struct cuda_driver *cuda = options->cuda;
    const struct arena *arena = &options->arena;
    *gpu =
        (struct gpu){.cuda = cuda, .arena_bytes = arena->bytes, .heap_bytes = options->heap_bytes};
    uint32_t error = gpu_arena_reserve_host(arena, why);
    if (error)
        return error;
    gpu->host_base = arena->host_base;
    cuda_result result = cuda->cuInit(0);
    error = result == CUDA_OK ? gpu_arena_reserve_device(cuda, arena, why)
                              : driver_error_set_init(why, result);
    if (!error) {
        gpu->device_base = arena->device_base;
        error = gpu_find_device(cuda, options->ordinal, options->uuid, &gpu->handle, why);
    }
    if (!error)
        error = require_features(gpu, why);
    if (error)
        gpu_close(gpu);
    return error;
}

static uint32_t find_granularity(struct gpu *gpu, struct error *why)
{
    cuda_mem_allocation_prop prop = own_memory(gpu);
    size_t granularity = 0;
    cuda_result result =
        gpu->cuda->cuMemGetAllocationGranularity(&granularity, &prop, CUDA_MEM_GRANULARITY_MINIMUM);
    if (result != CUDA_OK || granularity == 0)
        return driver_error_set(why, "cuMemGetAllocationGranularity", result);
    gpu->granularity = granularity;
    return 0;
}

uint32_t gpu_open_context(struct gpu *gpu, int ordinal, struct error *why)
{
    uint32_t error = retain_context(gpu, why);
    if (!error)
        error = find_granularity(gpu, why);
    if (!error)
        error = prove_device_arena(gpu, why);
    if (!error)
        error = device_heap_open(gpu->cuda, gpu->heap_bytes, &gpu->heap.bytes, why);
    if (!error)
        error = describe_device(gpu, ordinal, why);
    if (error)
        gpu_close(gpu);
    return error;
}

cuda_result gpu_enter(const struct gpu *gpu)
{
    return gpu->cuda->cuCtxSetCurrent(gpu->context);
}

int gpu_host_take(struct gpu *gpu, uint64_t address, uint64_t count)
{
    for (size_t i = 0; i < gpu->host_count; i++)
        if (gpu->hosts[i].start < address + count && address < gpu->hosts[i].end)
            return -EEXIST;
    if (array_reserve(gpu->hosts, gpu->host_room, gpu->host_count + 1) < 0)
        return -ENOMEM;
    gpu->hosts[gpu->host_count++] =
        (struct gpu_host_range){.start = address, .end = address + count};
    return 0;
}

void gpu_host_return(struct gpu *gpu, uint64_t address)
{
    for (size_t i = 0; i < gpu->host_count; i++)
        if (gpu->hosts[i].start == address) {
            gpu->hosts[i] = gpu->hosts[--gpu->host_count];
            return;
        }
}

void gpu_close(struct gpu *gpu)
{
    if (gpu->context)
        gpu->cuda->cuDevicePrimaryCtxRelease(gpu->handle);
    if (gpu->device_base)
        gpu->cuda->cuMemAddressFree(gpu->device_base, gpu->arena_bytes);
    if (gpu->host_base)
        munmap((void *)(uintptr_t)gpu->host_base, gpu->arena_bytes);
    free(gpu->hosts);
    *gpu = (struct gpu){.cuda = gpu->cuda};
}
