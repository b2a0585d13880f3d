/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Contexts, but for what their devices do. */
#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"

cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device device)
{
    cuda_context primary;
    if (!context)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_primary(device, &primary));
    DRIVER_TRY(driver_context_retain(primary));
    *context = primary;
    return CUDA_OK;
}

static cuda_result release(cuda_device device, bool all)
{
    cuda_context primary;
    DRIVER_TRY(driver_context_primary(device, &primary));
    return driver_context_release(primary, all);
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device device)
{
    return release(device, false);
}

cuda_result cuDevicePrimaryCtxRelease(cuda_device device)
{
    return release(device, false);
}

/* A primary context that nobody retains is reset already. */
cuda_result cuDevicePrimaryCtxReset_v2(cuda_device device)
{
    cuda_result result = release(device, true);
    return result == CUDA_ERR_INVALID_CONTEXT ? CUDA_OK : result;
}

cuda_result cuDevicePrimaryCtxReset(cuda_device device)
{
    return cuDevicePrimaryCtxReset_v2(device);
}

/* How a thread waits for the device is the only thing that flags choose, and each library chooses
 * it by itself. They are kept, because programs read them back. */
cuda_result cuDevicePrimaryCtxSetFlags_v2(cuda_device device, unsigned flags)
{
    cuda_context primary;
    DRIVER_TRY(driver_context_primary(device, &primary));
    if (flags & ~(unsigned)CUDA_CTX_FLAGS_MASK)
        return CUDA_ERR_INVALID_VALUE;
    atomic_store(&primary->flags, flags);
    return CUDA_OK;
}

cuda_result cuDevicePrimaryCtxSetFlags(cuda_device device, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

cuda_result cuDevicePrimaryCtxGetState(cuda_device device, unsigned *flags, int *active)
{
    cuda_context primary;
    DRIVER_TRY(front_check());
    DRIVER_TRY(driver_context_primary(device, &primary));
    if (!flags || !active)
        return CUDA_ERR_INVALID_VALUE;
    *flags = atomic_load(&primary->flags);
    *active = atomic_load(&primary->alive);
    return CUDA_OK;
}

cuda_result cuCtxCreate_v2(cuda_context *context, unsigned flags, cuda_device device)
{
    if (!context || (flags & ~(unsigned)CUDA_CTX_FLAGS_MASK))
        return CUDA_ERR_INVALID_VALUE;
    return driver_context_create(device, flags, context);
}

/* parameters: execution affinity, which no context has, and contexts for graphics. Programs
 * that want neither give an empty struct. */
cuda_result cuCtxCreate_v4(cuda_context *context, const cuda_ctx_create_params *parameters,
                           unsigned flags, cuda_device device)
{
    if (parameters && parameters->graphics)
        return DRIVER_ABSENT_CASE("cuCtxCreate of contexts for graphics");
    return parameters && parameters->affinity_count ? CUDA_ERR_UNSUPPORTED_EXEC_AFFINITY
                                                    : cuCtxCreate_v2(context, flags, device);
}

cuda_result cuCtxCreate_v3(cuda_context *context, void *affinities, int count, unsigned flags,
                           cuda_device device)
{
    (void)affinities;
    return count ? CUDA_ERR_UNSUPPORTED_EXEC_AFFINITY : cuCtxCreate_v2(context, flags, device);
}

cuda_result cuCtxDestroy_v2(cuda_context context)
{
    return driver_context_destroy(context);
}

cuda_result cuCtxAttach(cuda_context *context, unsigned flags)
{
    return context && !flags ? driver_context_attach(context) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuCtxDetach(cuda_context context)
{
    return driver_context_detach(context);
}

cuda_result cuCtxPushCurrent_v2(cuda_context context)
{
    cuda_context checked;
    if (!context)
        return CUDA_ERR_INVALID_CONTEXT;
    DRIVER_TRY(driver_context_check(context, &checked));
    return driver_context_push(checked);
}

cuda_result cuCtxPopCurrent_v2(cuda_context *context)
{
    return driver_context_pop(context);
}

cuda_result cuCtxSetCurrent(cuda_context context)
{
    cuda_context checked;
    if (context)
        DRIVER_TRY(driver_context_check(context, &checked));
    else if (front_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    return driver_context_set(context);
}

cuda_result cuCtxGetCurrent(cuda_context *context)
{
    if (!context)
        return CUDA_ERR_INVALID_VALUE;
    if (front_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    *context = driver_context_top();
    return CUDA_OK;
}

cuda_result cuCtxGetDevice_v2(cuda_device *device, cuda_context context)
{
    cuda_context checked;
    if (!device)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(context, &checked));
    *device = checked->device;
    return CUDA_OK;
}

cuda_result cuCtxGetDevice(cuda_device *device)
{
    return cuCtxGetDevice_v2(device, NULL);
}

cuda_result cuCtxGetFlags(unsigned *flags)
{
    cuda_context context;
    if (!flags)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(NULL, &context));
    *flags = atomic_load(&context->flags);
    return CUDA_OK;
}

cuda_result cuCtxSetFlags(unsigned flags)
{
    cuda_context context;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (flags & ~(unsigned)CUDA_CTX_FLAGS_MASK)
        return CUDA_ERR_INVALID_VALUE;
    atomic_store(&context->flags, flags);
    return CUDA_OK;
}

/* Preferences for caches and banks are hints, which the driver may leave. */
cuda_result cuCtxGetCacheConfig(int *config)
{
    cuda_context context;
    if (!config)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(NULL, &context));
    *config = 0; /* none */
    return CUDA_OK;
}

cuda_result cuCtxSetCacheConfig(int config)
{
    enum { PREFER_EQUAL = 3 };
    cuda_context context;
    DRIVER_TRY(driver_context_check(NULL, &context));
    return config < 0 || config > PREFER_EQUAL ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

cuda_result cuCtxGetSharedMemConfig(int *config)
{
    enum { FOUR_BYTE_BANKS = 1 };
    cuda_context context;
    if (!config)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(NULL, &context));
    *config = FOUR_BYTE_BANKS;
    return CUDA_OK;
}

cuda_result cuCtxSetSharedMemConfig(int config)
{
    enum { EIGHT_BYTE_BANKS = 2 };
    cuda_context context;
    DRIVER_TRY(driver_context_check(NULL, &context));
    return config < 0 || config > EIGHT_BYTE_BANKS ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

/* No part of the cache is set aside, so no line of it persists. */
cuda_result cuCtxResetPersistingL2Cache(void)
{
    cuda_context context;
    return driver_context_check(NULL, &context);
}

cuda_result cuCtxEnablePeerAccess(cuda_context peer, unsigned flags)
{
    cuda_context context;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (flags || !peer)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(peer, &peer));
    return context->device == peer->device ? CUDA_ERR_INVALID_DEVICE
                                           : CUDA_ERR_PEER_ACCESS_UNSUPPORTED;
}

cuda_result cuCtxDisablePeerAccess(cuda_context peer)
{
    cuda_context context;
    DRIVER_TRY(driver_context_check(NULL, &context));
    DRIVER_TRY(peer ? driver_context_check(peer, &peer) : CUDA_ERR_INVALID_CONTEXT);
    return CUDA_ERR_PEER_ACCESS_NOT_ENABLED;
}

cuda_result cuCtxGetId(cuda_context context, unsigned long long *id)
{
    cuda_context checked;
    if (!id)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(context, &checked));
    *id = checked->id;
    return CUDA_OK;
}

cuda_result cuCtxGetApiVersion(cuda_context context, unsigned *version)
{
    cuda_context checked;
    if (!version)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(context, &checked));
    *version = 3020; /* the version that NVIDIA's driver names for contexts of all later ones */
    return CUDA_OK;
}

cuda_result cuCtxSynchronize(void)
{
    return cuCtxSynchronize_v2(NULL);
}
