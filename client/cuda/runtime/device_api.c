/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
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

/* Mapped memory is always on, so its flag is always there. */
cudart_error cudaGetDeviceFlags(unsigned *flags)
{
    int ordinal, active;
    unsigned found = 0;
    cudart_error error = flags ? runtime_context_device(&ordinal) : CUDART_INVALID_VALUE;

    if (error == CUDART_OK)
        error = DRIVER(cuDevicePrimaryCtxGetState, ordinal, &found, &active);
    if (error == CUDART_OK)
        *flags = found | MAP_HOST;
    return runtime_error_note(error);
}

/* Makes the device's context, and leaves the thread's as it is. */
cudart_error cudaInitDevice(int ordinal, unsigned device_flags, unsigned flags)
{
    enum { FLAGS_ARE_VALID = 1 }; /* cudaInitDeviceFlagsAreValid */
    cuda_context context;
    cudart_error error = runtime_driver_open();

    if (flags & ~(unsigned)FLAGS_ARE_VALID)
        return runtime_error_note(CUDART_INVALID_VALUE);
    if (error == CUDART_OK && flags)
        error = DRIVER(cuDevicePrimaryCtxSetFlags, ordinal, device_flags & ~(unsigned)MAP_HOST);
    if (error == CUDART_OK)
        error = runtime_context_primary(ordinal, &context);
    return runtime_error_note(error);
}

cudart_error cudaDeviceGetPCIBusId(char *id, int size, int ordinal)
{
    cudart_error error = runtime_driver_open();

    return runtime_error_note(error == CUDART_OK ? DRIVER(cuDeviceGetPCIBusId, id, size, ordinal)
                                                 : error);
}

cudart_error cudaDeviceGetByPCIBusId(int *ordinal, const char *id)
{
    cudart_error error = runtime_driver_open();

    return runtime_error_note(error == CUDART_OK ? DRIVER(cuDeviceGetByPCIBusId, ordinal, id)
                                                 : error);
}

/* ---- peers ---- */

cudart_error cudaDeviceCanAccessPeer(int *can, int ordinal, int peer)
{
    cudart_error error = runtime_driver_open();

    return runtime_error_note(error == CUDART_OK ? DRIVER(cuDeviceCanAccessPeer, can, ordinal, peer)
                                                 : error);
}

cudart_error cudaDeviceGetP2PAttribute(int *value, int attribute, int source, int destination)
{
    cudart_error error = runtime_driver_open();

    return runtime_error_note(
        error == CUDART_OK ? DRIVER(cuDeviceGetP2PAttribute, value, attribute, source, destination)
                           : error);
}

cudart_error cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    cuda_context context;
    cudart_error error;

    ENTER();
    error = runtime_context_primary(peer, &context);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuCtxEnablePeerAccess, context, flags)
                                                 : error);
}

cudart_error cudaDeviceDisablePeerAccess(int peer)
{
    cuda_context context;
    cudart_error error;

    ENTER();
    error = runtime_context_primary(peer, &context);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuCtxDisablePeerAccess, context) : error);
}

/* ---- what a device is, and what its context prefers ---- */

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

cudart_error cudaCtxResetPersistingL2Cache(void)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxResetPersistingL2Cache));
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

/* The preferences' numbers are the driver's. */
cudart_error cudaDeviceGetCacheConfig(int *config)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxGetCacheConfig, config));
}

cudart_error cudaDeviceSetCacheConfig(int config)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxSetCacheConfig, config));
}

cudart_error cudaDeviceGetSharedMemConfig(int *config)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxGetSharedMemConfig, config));
}

cudart_error cudaDeviceSetSharedMemConfig(int config)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxSetSharedMemConfig, config));
}

cudart_error cudaDeviceSynchronize(void)
{
    ENTER();
    return runtime_error_note(DRIVER(cuCtxSynchronize));
}

cudart_error cudaDeviceReset(void)
{
    return runtime_error_note(runtime_context_reset(registry_context_forget));
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
    *version = release_number;
    return CUDART_OK;
}

/* The driver's own functions, whose numbers of flags and statuses are the runtime's. A function
 * that is not there is no error. */
cudart_error cudaGetDriverEntryPointByVersion(const char *symbol, void **fn, unsigned version,
                                              unsigned long long flags,
                                              cuda_proc_address_status *status)
{
    enum { FLAGS = CUDA_PROC_ADDRESS_LEGACY_STREAM | CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM };
    cuda_proc_address_status found = CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    int newest = 0;
    cudart_error error = runtime_driver_open();

    if (error == CUDART_OK)
        error = DRIVER(cuDriverGetVersion, &newest);
    if (error == CUDART_OK && (!symbol || !*symbol || !fn || flags & ~(unsigned long long)FLAGS ||
                               version > (unsigned)newest))
        error = CUDART_INVALID_VALUE;
    if (error == CUDART_OK)
        error = DRIVER(cuGetProcAddress, symbol, fn, (int)version, flags, &found);
    if (error == CUDA_ERR_NOT_FOUND) {
        *fn = NULL;
        error = CUDART_OK;
    }
    if (error == CUDART_OK && status)
        *status = found;
    return runtime_error_note(error);
}

cudart_error cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
                                     cuda_proc_address_status *status)
{
    return cudaGetDriverEntryPointByVersion(symbol, fn, (unsigned)release_number, flags, status);
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
