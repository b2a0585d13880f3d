/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_connection.h"

#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/stream.h"
#include "client/engine/thread_stream.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_pool.h"

cuda_result driver_connection_of(cuda_context handle, gpushare_connection **connection)
{
    cuda_context context;
    struct driver_device *device;
    DRIVER_TRY(driver_context_check(handle, &context));
    DRIVER_TRY(driver_device_get(context->device, &device));
    DRIVER_TRY(driver_device_connect(device, connection));
    return driver_connection_check(*connection);
}

cuda_result driver_connection_current(gpushare_connection **connection)
{
    return driver_connection_of(NULL, connection);
}

void driver_connection_settle(const gpushare_connection *connection)
{
    const struct driver_device *device = driver_pool_keeps() ? driver_device_of(connection) : NULL;
    if (device)
        driver_pool_settle(device->ordinal);
}

cuda_result driver_work_failure(gpushare_connection *connection, gpushare_error error)
{
    struct driver_device *device;
    cuda_result result = driver_result(error);
    if ((error == GPUSHARE_ERROR_INTERRUPTED || error == GPUSHARE_ERROR_STATE_LOST) &&
        (device = driver_device_of(connection)))
        atomic_store(&device->lost, (int)result);
    return result;
}

cuda_result driver_stream_connection(cuda_stream handle, gpushare_connection **connection)
{
    const struct gpushare_stream *made = driver_stream_handle(handle);
    if (!made || made == GPUSHARE_STREAM_PER_THREAD)
        return driver_connection_current(connection);
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
