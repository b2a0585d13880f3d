/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * connect: the way from a wish to a connection that can be used; and its end.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_CONNECT_H
#define GPUSHARE_CLIENT_ENGINE_CONNECT_H

#include "client/gpushare.h"

/* Puts a finished connection into the registry, with an id, and makes forks known. */
void connection_register(gpushare_connection *connection);

/* Frees a connection that is not (or no longer) in the registry, finished or not. In a forked child
 * only its memory. */
void connection_delete(gpushare_connection *connection);

#endif
