/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* own_server: a step's private server on the driver under examination. One at a time. */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_OWN_SERVER_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_OWN_SERVER_H

#include "tests/support/server.h"

/*
 * It has the settings of the software GPU, or of a driver for tests, that this process was given,
 * and those two, "NAME=value" or NULL. Clients of this process and of those that it starts
 * find it by $GPUSHARE_SOCKET. Ends the step if it can't be started. A step that ends before its
 * server ends it too, and its log stands in the step's.
 */
struct server *own_server_start(const char *setting, const char *other_setting);

/* Prints its log. A status other than 0 is a failure of the step. */
void own_server_stop(struct server *server);

#endif
