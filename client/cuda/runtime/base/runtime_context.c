/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/base/runtime_context.h"

#include <pthread.h>
#include <stdatomic.h>

#include "client/cuda/runtime/base/runtime_driver.h"
#include "common/devices_max.h"

/* Each held while its device's context is made or reset. */
static pthread_mutex_t locks[DEVICES_MAX] = {[0 ... DEVICES_MAX - 1] = PTHREAD_MUTEX_INITIALIZER};
static _Atomic(cuda_context) primary[DEVICES_MAX]; /* NULL until it is retained */
static _Thread_local int chosen;

/* Contexts that were reset, and that are current in threads which have not called since. A context
 * that is made again may have the same handle. */
static _Atomic(cuda_context) ended[DEVICES_MAX];
atomic_bool runtime_context_any_ended;

/* A reset holds the lock while it waits for the program's host functions. These may call, and must
 * not wait for it: the driver refuses them, and is asked first. */
static cudart_error ask_permission(int ordinal)
{
    unsigned flags;
    int active;

    return DRIVER(cuDevicePrimaryCtxGetState, ordinal, &flags, &active);
}

static cudart_error retain(int ordinal, cuda_context *context)
{
    cudart_error error;

    *context = primary[ordinal];
    if (*context)
        return CUDART_OK;
    error = ask_permission(ordinal);
    if (error != CUDART_OK)
        return error;
    pthread_mutex_lock(&locks[ordinal]);
    if (!primary[ordinal]) {
        cuda_context made = NULL;

        error = DRIVER(cuDevicePrimaryCtxRetain, &made, ordinal);
        if (error == CUDART_OK)
            primary[ordinal] = made;
        if (error == CUDART_OK && atomic_load(&ended[ordinal]) == made)
            atomic_store(&ended[ordinal], NULL);
    }
    *context = primary[ordinal];
    pthread_mutex_unlock(&locks[ordinal]);
    return error;
}

static cudart_error enter_primary(int ordinal, cuda_context *context)
{
    cudart_error error = retain(ordinal, context);

    return error == CUDART_OK ? DRIVER(cuCtxSetCurrent, *context) : error;
}

/* The device whose context this was before a reset; -1: none. */
static int ended_device(cuda_context context)
{
    if (!context || !atomic_load_explicit(&runtime_context_any_ended, memory_order_relaxed))
        return -1;
    for (int i = 0; i < DEVICES_MAX; i++)
        if (atomic_load(&ended[i]) == context)
            return i;
    return -1;
}

cudart_error runtime_context_enter(cuda_context *context)
{
    int again;
    cuda_context current = NULL;
    cudart_error error = runtime_driver_open();

    if (error == CUDART_OK)
        error = DRIVER(cuCtxGetCurrent, &current);
    if (error == CUDART_OK && !current)
        error = enter_primary(chosen, &current);
    else if (error == CUDART_OK && (again = ended_device(current)) >= 0)
        error = enter_primary(again, &current);
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
    if (current && (*ordinal = ended_device(current)) < 0)
        return DRIVER(cuCtxGetDevice, ordinal);
    if (!current)
        *ordinal = chosen;
    return CUDART_OK;
}

cudart_error runtime_context_reset(void (*forget)(cuda_context context))
{
    int ordinal = 0;
    cuda_context context;
    cudart_error error = runtime_context_device(&ordinal);

    if (error == CUDART_OK)
        error = ask_permission(ordinal);
    if (error != CUDART_OK)
        return error;
    pthread_mutex_lock(&locks[ordinal]);
    context = primary[ordinal];
    /* Loaded code is forgotten only if it is gone. */
    if (context)
        error = DRIVER(cuDevicePrimaryCtxReset, ordinal);
    if (context && error == CUDART_OK) {
        forget(context);
        primary[ordinal] = NULL;
        atomic_store(&ended[ordinal], context);
        atomic_store(&runtime_context_any_ended, true);
    }
    pthread_mutex_unlock(&locks[ordinal]);
    return error;
}

cudart_error runtime_context_primary(int ordinal, cuda_context *context)
{
    int count = 0;
    cudart_error error = runtime_driver_open();

    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetCount, &count);
    if (error != CUDART_OK)
        return error;
    if (ordinal < 0 || ordinal >= count || ordinal >= DEVICES_MAX)
        return CUDART_INVALID_DEVICE;
    return retain(ordinal, context);
}

cudart_error runtime_context_select(int ordinal)
{
    cuda_context context;
    cudart_error error = runtime_context_primary(ordinal, &context);

    if (error == CUDART_OK)
        error = DRIVER(cuCtxSetCurrent, context);
    if (error == CUDART_OK)
        chosen = ordinal;
    return error;
}
