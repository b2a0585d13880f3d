/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Contexts: what the server's one context does for all clients. */
#include "client/cuda/driver/base/driver_connection.h"
#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/stream.h"
#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"

/*
 * The limits are those of the server's context, which serves all clients. A client's own is the
 * room for what its kernels print, and the stack that it has asked for (driver_stack.h). Of the
 * heap each client is told its size, of the others CUDA's initial value; it may ask for as much or
 * less, and nothing changes.
 */
enum { SYNC_DEPTH = 3, PENDING_LAUNCHES = 4, FETCH_GRANULARITY = 5, PERSISTING_CACHE = 6 };

static const size_t shared_limits[PERSISTING_CACHE + 1] = {
    [PERSISTING_CACHE] = 0, /* no part of the second-level cache is set aside */
};

static cuda_result check_limit(cuda_limit limit, struct driver_device **device)
{
    cuda_context context;
    const int number = (int)limit;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (number < 0 || number > PERSISTING_CACHE || number == SYNC_DEPTH ||
        number == PENDING_LAUNCHES)
        return CUDA_ERR_UNSUPPORTED_LIMIT;
    if (number == FETCH_GRANULARITY)
        return DRIVER_ABSENT_CASE("cuCtxGetLimit and cuCtxSetLimit of fetches");
    return driver_device_get(context->device, device);
}

static size_t shared_limit(const struct driver_device *device, cuda_limit limit)
{
    return limit == CUDA_LIMIT_MALLOC_HEAP_SIZE ? device->described.kernel_heap
                                                : shared_limits[limit];
}

static cuda_result refuse_heap(const struct driver_device *device, size_t wanted)
{
    char there[UNITS_TEXT], asked[UNITS_TEXT];
    units_format_size(device->described.kernel_heap, there);
    units_format_size(wanted, asked);
    log_error(MESSAGE_TEXT(driver_heap_limit), there, asked, asked);
    return CUDA_ERR_NOT_SUPPORTED;
}

cuda_result cuCtxGetLimit(size_t *value, cuda_limit limit)
{
    struct driver_device *device;
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(check_limit(limit, &device));
    if (limit == CUDA_LIMIT_STACK_SIZE)
        *value = driver_stack_limit(&device->stack);
    else if (limit == CUDA_LIMIT_PRINTF_FIFO_SIZE)
        *value = driver_print_limit(&device->print);
    else
        *value = shared_limit(device, limit);
    return CUDA_OK;
}

static cuda_result set_stack(struct driver_device *device, size_t value)
{
    gpushare_connection *connection;
    DRIVER_TRY(driver_connection_current(&connection));
    return driver_connection_result(connection,
                                    driver_stack_set_limit(&device->stack, connection, value));
}

cuda_result cuCtxSetLimit(cuda_limit limit, size_t value)
{
    struct driver_device *device;
    DRIVER_TRY(check_limit(limit, &device));
    if (limit == CUDA_LIMIT_STACK_SIZE)
        return set_stack(device, value);
    if (limit == CUDA_LIMIT_PRINTF_FIFO_SIZE)
        return driver_result(driver_print_set_limit(&device->print, value));
    if (value <= shared_limit(device, limit))
        return CUDA_OK;
    return limit == CUDA_LIMIT_MALLOC_HEAP_SIZE
               ? refuse_heap(device, value)
               : DRIVER_ABSENT_CASE("cuCtxSetLimit above CUDA's initial values");
}

cuda_result cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    cuda_context context;
    struct driver_device *device;
    DRIVER_TRY(driver_context_check(NULL, &context));
    DRIVER_TRY(driver_device_get(context->device, &device));
    if (least)
        *least = device->described.priority_least;
    if (greatest)
        *greatest = device->described.priority_greatest;
    return CUDA_OK;
}

cuda_result cuCtxSynchronize_v2(cuda_context context)
{
    gpushare_connection *connection;
    DRIVER_TRY(driver_connection_of(context, &connection));
    gpushare_error error = stream_wait_connection(connection);
    driver_connection_show(connection, true);
    DRIVER_TRY(driver_connection_result(connection, error));
    driver_connection_settle(connection);
    return CUDA_OK;
}
