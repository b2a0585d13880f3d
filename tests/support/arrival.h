/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * arrival: how a client of a test begins. Each call fails the test as OK does, if the client
 * library or the server refuses.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_ARRIVAL_H
#define GPUSHARE_TESTS_SUPPORT_ARRIVAL_H

#include "client/gpushare.h"
#include "tests/support/server.h"

/* Connects to the server. percentage: the limit of multiprocessors; 0: none of its own. The caller
 * closes the connection. */
gpushare_connection *arrival_connect(const struct server *server, double percentage);

/* The same with other options. Their size and socket are set here. */
gpushare_connection *arrival_connect_with(const struct server *server,
                                          struct gpushare_options options);

/* Loads a module of PTX and returns its kernel of this name, which lasts as long as the
 * connection. */
gpushare_function *arrival_load(gpushare_connection *gpu, const char *ptx, const char *kernel);

#endif
