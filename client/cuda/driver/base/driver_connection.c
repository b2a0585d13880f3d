/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_connection.h"

#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
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

void driver_connection_show(const gpushare_connection *connection, bool all)
{
    struct driver_device *device = driver_print_is_used() ? driver_device_of(connection) : NULL;
    if (device)
        driver_print_show(&device->print, connection, all);
}

cuda_result driver_connection_finish(gpushare_connection *connection)
{
    struct driver_device *device = driver_print_is_used() ? driver_device_of(connection) : NULL;
    return device ? driver_connection_result(connection,
                                             driver_print_finish(&device->print, connection))
                  : CUDA_OK;
}

cuda_result driver_connection_load(gpushare_connection *connection, const void *image, size_t bytes,
                                   gpushare_module **module)
{
    struct driver_device *device = driver_device_of(connection);
    if (!device)
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    return driver_connection_result(
        connection, driver_print_load_image(&device->print, connection, image, bytes, module));
}

cuda_result driver_connection_load_file(gpushare_connection *connection, const char *path,
                                        gpushare_module **module)
{
    struct driver_device *device = driver_device_of(connection);
    if (!device)
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    gpushare_error error = driver_print_load_file(&device->print, connection, path, module);
    return error == GPUSHARE_ERROR_NOT_FOUND ? CUDA_ERR_FILE_NOT_FOUND
                                             : driver_connection_result(connection, error);
}

cuda_result driver_connection_failure(gpushare_connection *connection, gpushare_error error)
{
    struct driver_device *device;
    cuda_result result = driver_result(error);
    if ((error == GPUSHARE_ERROR_INTERRUPTED || error == GPUSHARE_ERROR_STATE_LOST) &&
        (device = driver_device_of(connection)))
        atomic_store(&device->lost, (int)result);
    return result;
}
