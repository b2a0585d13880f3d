/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * connect: how a connection is made, and how it ends.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_CONNECT_H
#define GPUSHARE_CLIENT_ENGINE_CONNECT_H

#include "client/gpushare.h"

/*
 * Connects to the server and becomes a client of one device, as gpushare_connect says.
 * options: whole, not NULL. *connection is the caller's, to be ended with connect_close;
 * written on success only. Any thread.
 */
gpushare_error connect_open(const struct gpushare_options *options,
                            gpushare_connection **connection);

/*
 * Ends and frees a connection, with all that was made on it. No other thread may be using it.
 * In a forked child it frees memory and nothing else.
 */
void connect_close(gpushare_connection *connection);

#endif
