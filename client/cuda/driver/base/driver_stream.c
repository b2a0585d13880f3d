/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_stream.h"

#include "client/cuda/driver/base/driver_connection.h"
#include "client/engine/stream.h"
#include "client/engine/thread_stream.h"

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
    return driver_stream_of(connection, handle, stream);
}

cuda_result driver_stream_of(gpushare_connection *connection, cuda_stream handle,
                             struct gpushare_stream **stream)
{
    return driver_result(thread_stream_resolve(connection, driver_stream_handle(handle), stream));
}
