/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/ordered_memory.h"
#include "client/cuda/runtime/registry.h"
#include "client/cuda/runtime/release.h"
#include "client/cuda/runtime/base/runtime_context.h"
#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/runtime_exports.h"

enum { MAP_HOST = 8 }; /* cudaDeviceMapHost */

cudart_error cudaGetDeviceCount(int *count)
{
    cudart_error error = count ? runtime_driver_open() : CUDART_INVALID_VALUE;

    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetCount, count);
    if (error == CUDART_OK && *count == 0)
        error = CUDA_ERR_NO_DEVICE;
    if (error != CUDART_OK && count)
        *count = 0;
    return runtime_error_note(error);
}

cudart_error cudaGetDevice(int *ordinal)
{
    return runtime_error_note(runtime_context_device(ordinal));
}

cudart_error cudaSetDevice(int ordinal)
{
    return runtime_error_note(runtime_context_select(ordinal));
}

/* The numbers of flags are the driver's. */
cudart_error cudaSetDeviceFlags(unsigned flags)
{
    int ordinal;
    cudart_error error = runtime_context_device(&ordinal);

    /* Mapped memory is always on, and NVIDIA's driver refuses the flag for it. */
    if (error == CUDART_OK)
        error = DRIVER(cuDevicePrimaryCtxSetFlags, ordinal, flags & ~(unsigned)MAP_HOST);
    return runtime_error_note(error);
}

/* The numbers of attributes are the driver's. */
cudart_error cudaDeviceGetAttribute(int *value, int attribute, int ordinal)
{
    cudart_error error = runtime_driver_open();

    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetAttribute, value, (cuda_device_attribute)attribute, ordinal);
    return runtime_error_note(error);
}

cudart_error cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxGetStreamPriorityRange, least, greatest));
}

/* The numbers of limits are the driver's. */
cudart_error cudaDeviceGetLimit(size_t *value, int limit)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxGetLimit, value, (cuda_limit)limit));
}

cudart_error cudaDeviceSetLimit(int limit, size_t value)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxSetLimit, (cuda_limit)limit, value));
}

cudart_error cudaDeviceSynchronize(void)
{
    cudart_error error;

    ENTER();
    error = DRIVER(cuCtxSynchronize);
    if (error == CUDART_OK)
        ordered_memory_trim();
    return runtime_error_note(error);
}

static void forget(cuda_context context)
{
    registry_context_forget(context);
    ordered_memory_forget(context);
}

cudart_error cudaDeviceReset(void)
{
    return runtime_error_note(runtime_context_reset(forget));
}

/* 0 without a driver, which is no error. */
cudart_error cudaDriverGetVersion(int *version)
{
    if (!version)
        return runtime_error_note(CUDART_INVALID_VALUE);
    *version = 0;
    return runtime_driver_open() == CUDART_OK
               ? runtime_error_note(DRIVER(cuDriverGetVersion, version))
               : CUDART_OK;
}

cudart_error cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return runtime_error_note(CUDART_INVALID_VALUE);
    *version = runtime_release;
    return CUDART_OK;
}

/* A profiler that is not there has nothing to start or stop; no driver calls that an error. */
cudart_error cudaProfilerStart(void)
{
    ENTER();
    return CUDART_OK;
}

cudart_error cudaProfilerStop(void)
{
    ENTER();
    return CUDART_OK;
}
