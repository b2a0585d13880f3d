/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * warning: sentences about what is no error and yet not what was asked for: a limit that does
 * not bind on this device, a variable that nothing reads.
 *
 * They go to options.warn, on the thread that connects. Where the program gave none, nobody is
 * told here: the library does not print. `gpushare info` shows them.
 */
#ifndef GPUSHARE_CLIENT_SESSION_WARNING_H
#define GPUSHARE_CLIENT_SESSION_WARNING_H

#include "client/session/environment.h"
#include "protocol.h"

/* Warns of variables of this process's environment that gpushare does not know. */
void warning_variables(const struct environment *environment);

/* Warns of limits that were asked for and do not bind on this device, in its present mode. index:
 * the server's number of the device. */
void warning_limits(const struct environment *environment, const struct gpushare_device *device,
                    const struct proto_attached *granted, uint32_t index);

#endif
