/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Contexts: what the server's one context does for all clients. */
#include "client/cuda/driver/base/driver_connection.h"
#include "client/cuda/driver/base/driver_device.h"
#include "client/engine/connection.h"
#include "client/engine/stream.h"
#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"

/* The limits are those of the server's context, which serves all clients, and it tells none of
 * them. Of its second-level cache no part is set aside. */
static cuda_result check_limit(cuda_limit asked)
{
    enum { SYNC_DEPTH = 3, PENDING_LAUNCHES = 4, PERSISTING_CACHE = 6, LAST = 10 };
    static atomic_flag named = ATOMIC_FLAG_INIT;
    cuda_context context;
    const int limit = (int)asked;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (limit < 0 || limit > LAST || limit == SYNC_DEPTH || limit == PENDING_LAUNCHES)
        return CUDA_ERR_UNSUPPORTED_LIMIT;
    return limit == PERSISTING_CACHE
               ? CUDA_OK
               : driver_absent_call("cuCtxGetLimit and cuCtxSetLimit of the context", &named);
}

cuda_result cuCtxGetLimit(size_t *value, cuda_limit limit)
{
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(check_limit(limit));
    *value = 0;
    return CUDA_OK;
}

cuda_result cuCtxSetLimit(cuda_limit limit, size_t value)
{
    DRIVER_TRY(check_limit(limit));
    return value ? CUDA_ERR_NOT_SUPPORTED : CUDA_OK;
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
    DRIVER_TRY(driver_work_result(connection, stream_wait_connection(connection)));
    driver_connection_settle(connection);
    return CUDA_OK;
}
