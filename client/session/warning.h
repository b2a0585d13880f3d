/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * warning: sentences for the user about wishes that have no effect but are no error: a limit that
 * does not bind on this device, or a variable that no program of gpushare reads.
 *
 * They go to options.warn, on the thread that connects. If the program gave no such function they
 * are dropped: the library does not print. `gpushare info` shows them, and the drop-in driver
 * writes them to stderr, unless GPUSHARE_WARNINGS=0.
 */
#ifndef GPUSHARE_CLIENT_SESSION_WARNING_H
#define GPUSHARE_CLIENT_SESSION_WARNING_H

#include <stdbool.h>

#include "client/session/device.h"
#include "client/session/environment.h"
#include "protocol.h"

/* Whether the environment leaves warnings on for those that print them. */
bool warning_wanted(void);

/* Warns of variables of this process's environment that gpushare does not know. */
void warning_variables(const struct environment *environment);

/* Warns of a limit for a device that this process does not see. */
void warning_devices(const struct environment *environment, const struct device_survey *survey);

/* Warns of limits that were asked for and do not bind on this device, in its present mode. index:
 * the server's number of the device. */
void warning_limits(const struct environment *environment, const struct gpushare_device *device,
                    const struct proto_attached *granted, uint32_t index);

#endif
