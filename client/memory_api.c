/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Device memory and shared host buffers. */
#include "client/abi.h"
#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "client/session/failure.h"
#include "common/messages.h"

static gpushare_error check_allocation(gpushare_connection *connection, uint64_t count,
                                       const void *output, const char *name)
{
    gpushare_error error = connection_check(connection);
    if (error)
        return error;
    if (!output)
        return failure(MESSAGE(argument_null), name);
    if (!count)
        return failure(MESSAGE(count_zero));
    return GPUSHARE_SUCCESS;
}

gpushare_error gpushare_memory_alloc(gpushare_connection *connection, uint64_t count,
                                     gpushare_address *address)
{
    gpushare_error error = check_allocation(connection, count, address, "address");
    return error ? error : memory_device_alloc(connection, count, address);
}

gpushare_error gpushare_memory_free(gpushare_connection *connection, gpushare_address address)
{
    gpushare_error error = connection_check(connection);
    return error || !address ? error : memory_device_free(connection, address);
}

gpushare_error gpushare_memory_info(gpushare_connection *connection,
                                    struct gpushare_memory_info *info)
{
    struct gpushare_memory_info now;
    gpushare_error error = connection_check(connection);
    if (error || (error = memory_usage(connection, &now)))
        return error;
    return abi_copy_out(info, &now, sizeof now, "info");
}

gpushare_error gpushare_host_alloc(gpushare_connection *connection, uint64_t count, void **buffer)
{
    gpushare_error error = check_allocation(connection, count, buffer, "buffer");
    return error ? error : memory_buffer_alloc(connection, count, buffer);
}

gpushare_error gpushare_host_free(gpushare_connection *connection, void *buffer)
{
    gpushare_error error = connection_check(connection);
    return error || !buffer ? error : memory_buffer_free(connection, (uint64_t)(uintptr_t)buffer);
}
