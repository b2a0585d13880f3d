/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Devices. */
#include "client/abi.h"
#include "client/engine/connection.h"
#include "client/session/device.h"
#include "client/session/failure.h"
#include "common/messages.h"

gpushare_error gpushare_device_count(const struct gpushare_options *options, uint32_t *count)
{
    struct gpushare_options known;
    if (!count)
        return failure(MESSAGE(count_pointer_null));
    gpushare_error error = abi_copy_options(&known, options);
    return error ? error : device_count(&known, count);
}

gpushare_error gpushare_device_query(const struct gpushare_options *options,
                                     struct gpushare_device *device)
{
    struct gpushare_options known;
    struct gpushare_device described;
    gpushare_error error = abi_copy_options(&known, options);
    if (error || (error = device_query(&known, &described)))
        return error;
    return abi_copy_out(device, &described, sizeof described, "device");
}

gpushare_error gpushare_device(gpushare_connection *connection, struct gpushare_device *device)
{
    struct gpushare_device described;
    gpushare_error error = connection_check(connection);
    if (error)
        return error;
    connection_device(connection, &described);
    return abi_copy_out(device, &described, sizeof described, "device");
}
