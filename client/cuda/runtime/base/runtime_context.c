/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/base/runtime_context.h"

#include <pthread.h>

#include "client/cuda/runtime/base/runtime_driver.h"

/* More GPUs than one machine has. */
enum { DEVICES_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_context primary[DEVICES_MAX]; /* NULL until it is retained */
static _Thread_local int chosen;

static cudart_error retain(int ordinal, cuda_context *context)
{
    cudart_error error = CUDART_OK;

    pthread_mutex_lock(&lock);
    if (!primary[ordinal]) {
        cuda_context made = NULL;

        error = DRIVER(cuDevicePrimaryCtxRetain, &made, ordinal);
        if (error == CUDART_OK)
            primary[ordinal] = made;
    }
    *context = primary[ordinal];
    pthread_mutex_unlock(&lock);
    return error;
}

static cudart_error enter_primary(int ordinal, cuda_context *context)
{
    cudart_error error = retain(ordinal, context);

    return error == CUDART_OK ? DRIVER(cuCtxSetCurrent, *context) : error;
}

cudart_error runtime_context_enter(cuda_context *context)
{
    cuda_context current = NULL;
    cudart_error error = runtime_driver_open();

    if (error == CUDART_OK)
        error = DRIVER(cuCtxGetCurrent, &current);
    if (error == CUDART_OK && !current)
        error = enter_primary(chosen, &current);
    if (context)
        *context = current;
    return error;
}

cudart_error runtime_context_device(int *ordinal)
{
    cuda_context current = NULL;
    cudart_error error = runtime_driver_open();

    if (!ordinal)
        return CUDART_INVALID_VALUE;
    if (error == CUDART_OK)
        error = DRIVER(cuCtxGetCurrent, &current);
    if (error != CUDART_OK)
        return error;
    if (current)
        return DRIVER(cuCtxGetDevice, ordinal);
    *ordinal = chosen;
    return CUDART_OK;
}

cudart_error runtime_context_select(int ordinal)
{
    int count = 0;
    cuda_context context;
    cudart_error error = runtime_driver_open();

    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetCount, &count);
    if (error != CUDART_OK)
        return error;
    if (ordinal < 0 || ordinal >= count || ordinal >= DEVICES_MAX)
        return CUDART_INVALID_DEVICE;
    error = enter_primary(ordinal, &context);
    if (error == CUDART_OK)
        chosen = ordinal;
    return error;
}
