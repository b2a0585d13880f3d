/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Connections and their limits. */
#include "client/abi.h"
#include "client/engine/connect.h"
#include "client/engine/connection.h"
#include "client/session/failure.h"
#include "common/messages.h"

gpushare_error gpushare_connect(const struct gpushare_options *options,
                                gpushare_connection **connection)
{
    struct gpushare_options known;
    if (!connection)
        return failure(MESSAGE(connection_pointer_null));
    gpushare_error error = abi_copy_options(&known, options);
    return error ? error : connect_open(&known, connection);
}

void gpushare_close(gpushare_connection **connection)
{
    if (!connection || !*connection)
        return;
    gpushare_connection *closing = *connection;
    *connection = NULL;
    connect_close(closing);
}

gpushare_error gpushare_connection_error(gpushare_connection *connection, const char **text)
{
    const char *sentence;
    gpushare_error error = connection_ended(connection, &sentence);
    if (text)
        *text = sentence;
    return error;
}

gpushare_error gpushare_connection_state(gpushare_connection *connection,
                                         struct gpushare_connection_state *state)
{
    struct gpushare_connection_state now;
    gpushare_error error = connection_state(connection, &now);
    return error ? error : abi_copy_out(state, &now, sizeof now, "state");
}

gpushare_error gpushare_limits(gpushare_connection *connection, struct gpushare_limits *limits)
{
    struct gpushare_limits now;
    gpushare_error error = connection_check(connection);
    if (error || (error = connection_limits(connection, &now)))
        return error;
    return abi_copy_out(limits, &now, sizeof now, "limits");
}

gpushare_error gpushare_load_wait(gpushare_connection *connection, struct gpushare_load_wait *wait)
{
    struct gpushare_load_wait now;
    gpushare_error error = connection_check(connection);
    if (error || (error = connection_load_wait(connection, &now)))
        return error;
    return abi_copy_out(wait, &now, sizeof now, "wait");
}
