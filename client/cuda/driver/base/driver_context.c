/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_context.h"

#include <stdlib.h>

#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/stream.h"
#include "client/engine/thread_stream.h"

/* Programs nest a handful. */
enum { STACK_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_context_object primaries[LIMITS_DEVICES_MAX];
static unsigned retained[LIMITS_DEVICES_MAX]; /* under the lock */
static _Atomic unsigned long long last_id;

static _Thread_local struct {
    cuda_context contexts[STACK_MAX];
    unsigned depth;
} stack;

/* A function of the program must not call CUDA: one that ended a context would wait for itself. */
static cuda_result check_caller(void)
{
    return driver_host_fn_is_caller() ? CUDA_ERR_NOT_PERMITTED : CUDA_OK;
}

/* ---- the objects ---- */

cuda_result driver_context_primary(cuda_device ordinal, cuda_context *context)
{
    struct driver_device *device;
    DRIVER_TRY(driver_device_get(ordinal, &device));
    *context = &primaries[ordinal];
    pthread_mutex_lock(&lock);
    if (!(*context)->device) {
        (*context)->device = device;
        (*context)->id = atomic_fetch_add(&last_id, 1) + 1;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_OK;
}

cuda_result driver_context_retain(cuda_context primary)
{
    DRIVER_TRY(check_caller());
    unsigned *count = &retained[primary->device->ordinal];
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&lock);
    if (*count == 0)
        result = driver_device_enter(primary->device);
    if (result == CUDA_OK) {
        (*count)++;
        atomic_store(&primary->alive, true);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

cuda_result driver_context_release(cuda_context primary, bool all)
{
    DRIVER_TRY(check_caller());
    unsigned *count = &retained[primary->device->ordinal];
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&lock);
    if (*count == 0) {
        result = CUDA_ERR_INVALID_CONTEXT;
    } else {
        *count = all ? 0 : *count - 1;
        if (*count == 0) {
            atomic_store(&primary->alive, false);
            driver_device_leave(primary->device);
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

cuda_result driver_context_create(cuda_device ordinal, unsigned flags, cuda_context *context)
{
    struct driver_device *device;
    DRIVER_TRY(check_caller());
    DRIVER_TRY(driver_device_get(ordinal, &device));
    struct cuda_context_object *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_result result = driver_device_enter(device);
    if (result == CUDA_OK) {
        made->device = device;
        made->id = atomic_fetch_add(&last_id, 1) + 1;
        atomic_store(&made->flags, flags);
        atomic_store(&made->alive, true);
        result = driver_context_push(made);
        if (result != CUDA_OK)
            driver_device_leave(device);
    }
    if (result == CUDA_OK)
        *context = made;
    else
        free(made);
    return result;
}

cuda_result driver_context_destroy(cuda_context context)
{
    DRIVER_TRY(check_caller());
    if (!context || (context >= primaries && context < primaries + LIMITS_DEVICES_MAX))
        return CUDA_ERR_INVALID_CONTEXT;
    if (!atomic_exchange(&context->alive, false))
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    if (driver_context_top() == context)
        stack.depth--;
    driver_device_leave(context->device);
    return CUDA_OK;
}

/* ---- the thread's stack ---- */

cuda_result driver_context_push(cuda_context context)
{
    if (stack.depth == STACK_MAX)
        return CUDA_ERR_OUT_OF_MEMORY;
    stack.contexts[stack.depth++] = context;
    return CUDA_OK;
}

cuda_result driver_context_pop(cuda_context *context)
{
    if (stack.depth == 0)
        return CUDA_ERR_INVALID_CONTEXT;
    stack.depth--;
    if (context)
        *context = stack.contexts[stack.depth];
    return CUDA_OK;
}

cuda_result driver_context_set(cuda_context context)
{
    if (stack.depth)
        stack.depth--;
    return context ? driver_context_push(context) : CUDA_OK;
}

cuda_context driver_context_top(void)
{
    return stack.depth ? stack.contexts[stack.depth - 1] : NULL;
}

cuda_result driver_context_check(cuda_context handle, cuda_context *context)
{
    DRIVER_TRY(check_caller());
    *context = handle ? handle : driver_context_top();
    if (driver_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (!*context)
        return CUDA_ERR_INVALID_CONTEXT;
    return atomic_load_explicit(&(*context)->alive, memory_order_relaxed)
               ? CUDA_OK
               : CUDA_ERR_CONTEXT_IS_DESTROYED;
}

/* ---- what stands on them ---- */

cuda_result driver_connection_check(gpushare_connection *connection)
{
    DRIVER_TRY(check_caller());
    const struct driver_device *device = driver_device_of(connection);
    if (!device)
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    int lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    return lost ? (cuda_result)lost : driver_result(connection_check(connection));
}

cuda_result driver_context_connection(gpushare_connection **connection)
{
    cuda_context context;
    DRIVER_TRY(driver_context_check(NULL, &context));
    DRIVER_TRY(driver_device_connect(context->device, connection));
    return driver_connection_check(*connection);
}

cuda_result driver_work_result(gpushare_connection *connection, gpushare_error error)
{
    struct driver_device *device;
    cuda_result result = driver_result(error);
    driver_host_fn_order();
    if ((error == GPUSHARE_ERROR_INTERRUPTED || error == GPUSHARE_ERROR_STATE_LOST) &&
        (device = driver_device_of(connection)))
        atomic_store(&device->lost, (int)result);
    return result;
}

gpushare_stream *driver_stream_handle(cuda_stream handle)
{
    if (handle == CUDA_STREAM_LEGACY)
        return NULL;
    return handle == CUDA_STREAM_PER_THREAD ? GPUSHARE_STREAM_PER_THREAD
                                            : (gpushare_stream *)handle;
}

cuda_result driver_stream_connection(cuda_stream handle, gpushare_connection **connection)
{
    const struct gpushare_stream *made = driver_stream_handle(handle);
    if (!made || made == GPUSHARE_STREAM_PER_THREAD)
        return driver_context_connection(connection);
    *connection = made->connection;
    return driver_connection_check(*connection);
}

cuda_result driver_stream_resolve(cuda_stream handle, struct gpushare_stream **stream)
{
    gpushare_connection *connection;
    DRIVER_TRY(driver_stream_connection(handle, &connection));
    return driver_stream(connection, handle, stream);
}

cuda_result driver_stream(gpushare_connection *connection, cuda_stream handle,
                          struct gpushare_stream **stream)
{
    return driver_result(thread_stream_resolve(connection, driver_stream_handle(handle), stream));
}
