/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * warning: what a program is told when it connects and that is no error: a wish that
 * does not bind here, a variable that nobody reads.
 *
 * It goes to options.warn; where the program gave none, to standard error, for a limit
 * that silently is none is what users of other ways to share complain of. (So does
 * OpenMP's runtime with variables that it does not understand.) On the thread that
 * connects.
 */
#ifndef GPUSHARE_CLIENT_SESSION_WARNING_H
#define GPUSHARE_CLIENT_SESSION_WARNING_H

#include "client/session/environment.h"
#include "protocol.h"

/* Of this process's variables. To standard error once a process. */
void warning_variables(const struct environment *environment);

/* Of what was asked for in this environment and does not bind on this device, as it is now. index:
 * the server's number of the device. */
void warning_limits(const struct environment *environment, const struct gpushare_device *device,
                    const struct proto_attached *granted, uint32_t index);

#endif
