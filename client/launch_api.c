/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Launches. */
#include "client/engine/connection.h"
#include "client/engine/launch.h"
#include "client/engine/module.h"
#include "client/session/failure.h"
#include "common/messages.h"

static gpushare_error fail_no_function(void)
{
    return failure(MESSAGE(function_null));
}

gpushare_error gpushare_launch(gpushare_function *function, struct gpushare_dim grid,
                               struct gpushare_dim block, uint32_t shared, gpushare_stream *stream,
                               void *const *parameters)
{
    if (!function)
        return fail_no_function();
    gpushare_error error = connection_check(function->connection);
    if (error)
        return error;
    return launch_kernel(function, grid, block, shared, stream, parameters);
}

gpushare_error gpushare_launch_packed(gpushare_function *function, struct gpushare_dim grid,
                                      struct gpushare_dim block, uint32_t shared,
                                      gpushare_stream *stream, const void *parameters, size_t bytes)
{
    if (!function)
        return fail_no_function();
    gpushare_error error = connection_check(function->connection);
    if (error)
        return error;
    if (bytes != function->parameter_bytes || (bytes && !parameters))
        return failure(MESSAGE(parameter_block), function->name, function->parameter_bytes, bytes,
                       parameters);
    return launch_packed(function, grid, block, shared, stream, parameters);
}
