/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdio.h>
#include <string.h>

#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_pool.h"
#include "server/softgpu/api/api.h"
#include "server/softgpu/device/context_lock.h"
#include "server/softgpu/memory/memory_heap.h"
#include "server/softgpu/report.h"

cuda_result front_check(void)
{
    DRIVER_TRY(device_check());
    return stream_calls_host() ? CUDA_ERR_NOT_PERMITTED : CUDA_OK;
}

static cuda_result device_of(cuda_context handle, struct device **device)
{
    cuda_context context;

    DRIVER_TRY(driver_context_check(handle, &context));
    *device = device_at(context->device);
    return CUDA_OK;
}

cuda_result api_current(struct device **device)
{
    return device_of(NULL, device);
}

static cuda_result find_device(cuda_device ordinal, struct device **device)
{
    DRIVER_TRY(device_check_initialized());
    *device = device_at(ordinal);
    return *device ? CUDA_OK : CUDA_ERR_INVALID_DEVICE;
}

cuda_result cuInit(unsigned flags)
{
    return flags == 0 ? device_init(stream_complete_device) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERR_INVALID_VALUE;
    *version = device_driver_version();
    return CUDA_OK;
}

/* ---- devices ---------------------------------------------------------------------- */

cuda_result cuDeviceGetName(char *name, int size, cuda_device ordinal)
{
    struct device *device;

    DRIVER_TRY(find_device(ordinal, &device));
    if (!name || size <= 0)
        return CUDA_ERR_INVALID_VALUE;
    snprintf(name, (size_t)size, "%s", device_profile()->device_name);
    return CUDA_OK;
}

cuda_result cuDeviceGetUuid_v2(cuda_uuid *uuid, cuda_device ordinal)
{
    struct device *device;

    DRIVER_TRY(find_device(ordinal, &device));
    if (!uuid)
        return CUDA_ERR_INVALID_VALUE;
    device_uuid(device, uuid);
    return CUDA_OK;
}

cuda_result cuDeviceGetUuid(cuda_uuid *uuid, cuda_device ordinal)
{
    struct device *device;

    DRIVER_TRY(find_device(ordinal, &device));
    if (!uuid)
        return CUDA_ERR_INVALID_VALUE;
    softgpu_gpu_uuid(device_profile(), device->ordinal, uuid);
    return CUDA_OK;
}

cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_device ordinal)
{
    struct device *device;

    DRIVER_TRY(find_device(ordinal, &device));
    if (!bytes)
        return CUDA_ERR_INVALID_VALUE;
    *bytes = device_settings()->memory;
    return CUDA_OK;
}

cuda_result cuDeviceGetAttribute(int *value, cuda_device_attribute attribute, cuda_device ordinal)
{
    struct device *device;

    DRIVER_TRY(find_device(ordinal, &device));
    return value ? device_attribute(device, attribute, value) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuDeviceGetPCIBusId(char *id, int size, cuda_device ordinal)
{
    struct device *device;

    DRIVER_TRY(find_device(ordinal, &device));
    if (!id || size < 13)
        return CUDA_ERR_INVALID_VALUE;
    snprintf(id, (size_t)size, "0000:%02X:00.0", device->ordinal + 1);
    return CUDA_OK;
}

/* ---- contexts ------------------------------------------------------------------------ */

cuda_result cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct device *device;

    DRIVER_TRY(api_current(&device));
    if (least)
        *least = DEVICE_PRIORITY_LEAST;
    if (greatest)
        *greatest = DEVICE_PRIORITY_GREATEST;
    return CUDA_OK;
}

cuda_result api_await(struct device *device)
{
    cuda_result result;

    engine_lock();
    result = stream_await_device(device);
    engine_unlock();
    return result;
}

cuda_result cuCtxSynchronize_v2(cuda_context context)
{
    struct device *device;

    DRIVER_TRY(device_of(context, &device));
    DRIVER_TRY(api_await(device));
    if (driver_pool_keeps())
        driver_pool_settle(device_visible(device->ordinal));
    return CUDA_OK;
}

cuda_result cuCtxGetLimit(size_t *value, cuda_limit limit)
{
    struct device *device;

    DRIVER_TRY(api_current(&device));
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    if ((unsigned)limit >= sizeof(device->limits) / sizeof(device->limits[0]))
        return CUDA_ERR_UNSUPPORTED_LIMIT;
    *value = limit == CUDA_LIMIT_MALLOC_HEAP_SIZE
                 ? memory_heap_size(device->ordinal)
                 : atomic_load_explicit(&device->limits[limit], memory_order_relaxed);
    return CUDA_OK;
}

static cuda_result set_heap_size(const struct device *device, size_t bytes)
{
    const cuda_result result = memory_heap_set_size(device->ordinal, bytes);

    if (result != CUDA_OK)
        report("CU_LIMIT_MALLOC_HEAP_SIZE is set too late: the heap was made with the first module "
               "whose kernels allocate. Set it before that one is loaded");
    return result;
}

/* A driver keeps so much for each thread that the device can run at once. */
static bool stack_fits(const struct device *device, size_t bytes)
{
    const uint64_t threads = device_settings()->sms * device_profile()->sm_threads;
    uint64_t left, total;

    if (bytes <= atomic_load_explicit(&device->limits[CUDA_LIMIT_STACK_SIZE], memory_order_relaxed))
        return true;
    memory_info(device->ordinal, &left, &total);
    return bytes <= left / threads;
}

static cuda_result set_stack(struct device *device, size_t bytes)
{
    const uint64_t reserves = device_settings()->limit_reserves;

    context_lock_call(device, CONTEXT_CALL_SET_LIMIT);
    const bool fits = reserves < 2 || stack_fits(device, bytes);
    if (fits && reserves)
        atomic_store_explicit(&device->local_bytes, bytes, memory_order_relaxed);
    context_lock_release(device);
    return fits ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result cuCtxSetLimit(cuda_limit limit, size_t value)
{
    struct device *device;

    DRIVER_TRY(api_current(&device));
    if ((unsigned)limit >= sizeof(device->limits) / sizeof(device->limits[0]))
        return CUDA_ERR_UNSUPPORTED_LIMIT;
    if (limit == CUDA_LIMIT_MALLOC_HEAP_SIZE)
        return set_heap_size(device, value);
    if (limit == CUDA_LIMIT_STACK_SIZE)
        DRIVER_TRY(set_stack(device, value));
    atomic_store_explicit(&device->limits[limit], value, memory_order_relaxed);
    return CUDA_OK;
}
