/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * connect: makes and ends connections.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_CONNECT_H
#define GPUSHARE_CLIENT_ENGINE_CONNECT_H

#include "client/gpushare.h"

/*
 * Connects to the server and becomes a client of one device, as gpushare_connect says. options: a
 * whole struct, not NULL. *connection is written on success only; the caller ends it with
 * connect_close. Any thread.
 */
gpushare_error connect_open(const struct gpushare_options *options,
                            gpushare_connection **connection);

/*
 * Ends and frees a connection with all objects that were made on it. No other thread may be using
 * it. In a forked child it only frees memory.
 */
void connect_close(gpushare_connection *connection);

#endif
