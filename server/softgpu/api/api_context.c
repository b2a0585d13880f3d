/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/softgpu/api/api.h"
#include "server/softgpu/device/context_lock.h"
#include "server/softgpu/memory/memory_extent.h"

static _Thread_local struct device *current;

cuda_result api_current(struct device **device)
{
    API_TRY(device_check());
    if (!current || atomic_load_explicit(&current->retained, memory_order_relaxed) == 0)
        return CUDA_ERR_INVALID_CONTEXT;
    *device = current;
    return CUDA_OK;
}

static cuda_result find_device(cuda_device ordinal, struct device **device)
{
    API_TRY(device_check_initialized());
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

cuda_result cuGetErrorName(cuda_result error, const char **name)
{
    if (!name)
        return CUDA_ERR_INVALID_VALUE;
    *name = cuda_driver_error_name(error);
    return *name ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuGetErrorString(cuda_result error, const char **text)
{
    if (!text)
        return CUDA_ERR_INVALID_VALUE;
    *text = cuda_driver_error_name(error) ? cuda_driver_error_sentence(error) : NULL;
    return *text ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

/* ---- devices ---------------------------------------------------------------------- */

cuda_result cuDeviceGetCount(int *count)
{
    API_TRY(device_check_initialized());
    if (!count)
        return CUDA_ERR_INVALID_VALUE;
    *count = (int)device_settings()->visible_count;
    return CUDA_OK;
}

cuda_result cuDeviceGet(cuda_device *device, int ordinal)
{
    struct device *found;

    if (!device)
        return CUDA_ERR_INVALID_VALUE;
    API_TRY(find_device(ordinal, &found));
    *device = ordinal;
    return CUDA_OK;
}

cuda_result cuDeviceGetName(char *name, int size, cuda_device ordinal)
{
    struct device *device;

    API_TRY(find_device(ordinal, &device));
    if (!name || size <= 0)
        return CUDA_ERR_INVALID_VALUE;
    snprintf(name, (size_t)size, "%s", device_profile()->device_name);
    return CUDA_OK;
}

cuda_result cuDeviceGetUuid_v2(cuda_uuid *uuid, cuda_device ordinal)
{
    struct device *device;

    API_TRY(find_device(ordinal, &device));
    if (!uuid)
        return CUDA_ERR_INVALID_VALUE;
    device_uuid(device, uuid);
    return CUDA_OK;
}

cuda_result cuDeviceGetUuid(cuda_uuid *uuid, cuda_device ordinal)
{
    struct device *device;

    API_TRY(find_device(ordinal, &device));
    if (!uuid)
        return CUDA_ERR_INVALID_VALUE;
    softgpu_gpu_uuid(device_profile(), device->ordinal, uuid);
    return CUDA_OK;
}

cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_device ordinal)
{
    struct device *device;

    API_TRY(find_device(ordinal, &device));
    if (!bytes)
        return CUDA_ERR_INVALID_VALUE;
    *bytes = device_settings()->memory;
    return CUDA_OK;
}

cuda_result cuDeviceGetAttribute(int *value, cuda_device_attribute attribute, cuda_device ordinal)
{
    struct device *device;

    API_TRY(find_device(ordinal, &device));
    return value ? device_attribute(device, attribute, value) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuDeviceGetPCIBusId(char *id, int size, cuda_device ordinal)
{
    struct device *device;

    API_TRY(find_device(ordinal, &device));
    if (!id || size < 13)
        return CUDA_ERR_INVALID_VALUE;
    snprintf(id, (size_t)size, "0000:%02X:00.0", device->ordinal + 1);
    return CUDA_OK;
}

/* ---- contexts ------------------------------------------------------------------------ */

/* Beside other processes, which the ledger knows. */
static cuda_result begin_context(const struct device *device)
{
    const struct softgpu_settings *settings = device_settings();
    const bool exclusive = settings->compute_mode != CUDA_COMPUTEMODE_DEFAULT;

    switch (ledger_context_begin(memory_ledger(), device->ordinal, settings->memory,
                                 settings->context_memory, exclusive)) {
    case 0:
        return CUDA_OK;
    case -EBUSY:
        return CUDA_ERR_DEVICE_UNAVAILABLE;
    default:
        return CUDA_ERR_OUT_OF_MEMORY;
    }
}

cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device ordinal)
{
    struct device *device;
    cuda_result result = CUDA_OK;

    API_TRY(find_device(ordinal, &device));
    API_TRY(device_check());
    if (!context)
        return CUDA_ERR_INVALID_VALUE;
    /* As cuda.h says of cuCtxCreate. */
    if (device_settings()->compute_mode == CUDA_COMPUTEMODE_PROHIBITED)
        return CUDA_ERR_UNKNOWN;
    if (device_settings()->compute_mode != CUDA_COMPUTEMODE_DEFAULT && device_settings()->taken)
        return CUDA_ERR_DEVICE_UNAVAILABLE;
    engine_lock();
    if (atomic_load_explicit(&device->retained, memory_order_relaxed) == 0)
        result = begin_context(device);
    if (result == CUDA_OK)
        atomic_fetch_add_explicit(&device->retained, 1, memory_order_relaxed);
    engine_unlock();
    if (result == CUDA_OK)
        *context = &device->context;
    return result;
}

/* all: whoever retained it. */
static cuda_result release_primary(cuda_device ordinal, bool all)
{
    struct device *device;
    cuda_result result = CUDA_OK;
    unsigned retained;
    bool ended = false;

    API_TRY(find_device(ordinal, &device));
    engine_lock();
    retained = atomic_load_explicit(&device->retained, memory_order_relaxed);
    if (retained == 0) {
        result = CUDA_ERR_INVALID_CONTEXT;
    } else {
        ended = retained == 1 || all;
        if (ended) {
            stream_await_device(device); /* the context ends with its work done */
            ledger_context_end(memory_ledger(), device->ordinal);
        }
        atomic_store_explicit(&device->retained, all ? 0 : retained - 1, memory_order_relaxed);
    }
    engine_unlock();
    if (ended) {
        void (*unload)(struct device *) = atomic_load(&device->unload_modules);
        if (unload)
            unload(device);
    }
    return result;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device ordinal)
{
    return release_primary(ordinal, false);
}

cuda_result cuDevicePrimaryCtxRelease(cuda_device ordinal)
{
    return cuDevicePrimaryCtxRelease_v2(ordinal);
}

cuda_result cuDevicePrimaryCtxReset_v2(cuda_device ordinal)
{
    cuda_result result = release_primary(ordinal, true);

    return result == CUDA_ERR_INVALID_CONTEXT ? CUDA_OK : result;
}

cuda_result cuDevicePrimaryCtxReset(cuda_device ordinal)
{
    return cuDevicePrimaryCtxReset_v2(ordinal);
}

cuda_result cuDevicePrimaryCtxSetFlags_v2(cuda_device ordinal, unsigned flags)
{
    struct device *device;

    API_TRY(find_device(ordinal, &device));
    if (flags & ~(unsigned)CUDA_CTX_FLAGS_MASK)
        return CUDA_ERR_INVALID_VALUE;
    atomic_store_explicit(&device->context_flags, flags, memory_order_relaxed);
    return CUDA_OK;
}

cuda_result cuDevicePrimaryCtxSetFlags(cuda_device ordinal, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

cuda_result cuDevicePrimaryCtxGetState(cuda_device ordinal, unsigned *flags, int *active)
{
    struct device *device;

    API_TRY(find_device(ordinal, &device));
    if (!flags || !active)
        return CUDA_ERR_INVALID_VALUE;
    *flags = atomic_load_explicit(&device->context_flags, memory_order_relaxed);
    *active = atomic_load_explicit(&device->retained, memory_order_relaxed) > 0;
    return CUDA_OK;
}

cuda_result cuCtxSetCurrent(cuda_context context)
{
    API_TRY(device_check());
    if (context && (context->magic != CONTEXT_MAGIC ||
                    atomic_load_explicit(&context->device->retained, memory_order_relaxed) == 0))
        return CUDA_ERR_INVALID_CONTEXT;
    current = context ? context->device : NULL;
    return CUDA_OK;
}

cuda_result cuCtxGetCurrent(cuda_context *context)
{
    API_TRY(device_check_initialized());
    if (!context)
        return CUDA_ERR_INVALID_VALUE;
    *context = current ? &current->context : NULL;
    return CUDA_OK;
}

cuda_result cuCtxGetDevice(cuda_device *ordinal)
{
    struct device *device;

    API_TRY(api_current(&device));
    if (!ordinal)
        return CUDA_ERR_INVALID_VALUE;
    *ordinal = device_visible(device->ordinal);
    return CUDA_OK;
}

cuda_result cuCtxGetDevice_v2(cuda_device *ordinal, cuda_context context)
{
    if (!context)
        return cuCtxGetDevice(ordinal);
    API_TRY(device_check());
    if (context->magic != CONTEXT_MAGIC)
        return CUDA_ERR_INVALID_CONTEXT;
    if (!ordinal)
        return CUDA_ERR_INVALID_VALUE;
    *ordinal = device_visible(context->device->ordinal);
    return CUDA_OK;
}

cuda_result cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct device *device;

    API_TRY(api_current(&device));
    if (least)
        *least = DEVICE_PRIORITY_LEAST;
    if (greatest)
        *greatest = DEVICE_PRIORITY_GREATEST;
    return CUDA_OK;
}

static cuda_result synchronize_device(struct device *device)
{
    cuda_result result;

    engine_lock();
    result = stream_await_device(device);
    engine_unlock();
    return result;
}

cuda_result cuCtxSynchronize(void)
{
    struct device *device;

    API_TRY(api_current(&device));
    return synchronize_device(device);
}

cuda_result cuCtxSynchronize_v2(cuda_context context)
{
    if (!context)
        return cuCtxSynchronize();
    API_TRY(device_check());
    return context->magic == CONTEXT_MAGIC ? synchronize_device(context->device)
                                           : CUDA_ERR_INVALID_CONTEXT;
}

cuda_result cuCtxGetLimit(size_t *value, cuda_limit limit)
{
    struct device *device;

    API_TRY(api_current(&device));
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    if ((unsigned)limit >= sizeof(device->limits) / sizeof(device->limits[0]))
        return CUDA_ERR_UNSUPPORTED_LIMIT;
    *value = atomic_load_explicit(&device->limits[limit], memory_order_relaxed);
    return CUDA_OK;
}

cuda_result cuCtxSetLimit(cuda_limit limit, size_t value)
{
    struct device *device;

    API_TRY(api_current(&device));
    if ((unsigned)limit >= sizeof(device->limits) / sizeof(device->limits[0]))
        return CUDA_ERR_UNSUPPORTED_LIMIT;
    if (limit == CUDA_LIMIT_STACK_SIZE) {
        context_lock_call(device, CONTEXT_CALL_SET_LIMIT);
        if (device_settings()->limit_reserves)
            atomic_store_explicit(&device->local_bytes, value, memory_order_relaxed);
        context_lock_release(device);
    }
    atomic_store_explicit(&device->limits[limit], value, memory_order_relaxed);
    return CUDA_OK;
}
