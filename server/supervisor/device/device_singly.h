/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_singly: a device that serves one client at a time, whatever its schedule says, until it is
 * known whose kernel made the last worker fail (blame.h). Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_SINGLY_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_SINGLY_H

#include <stdint.h>

struct device;

/* From the next worker on, serves one client at a time, until events.absolves says that it may end;
 * it is asked for the first time a second after that worker is ready. Requests and limits of time
 * have no effect meanwhile. */
void device_singly_begin(struct device *device);

/* Without a worker: the next one serves as the schedule says. */
void device_singly_forget(struct device *device);

/* Asks events.absolves when the worker, which is ready now, has served for a second. */
void device_singly_look_later(struct device *device);

/* Asks events.absolves soon, and not only when the second is over. */
void device_singly_look_soon(struct device *device);

/* The time for which the device has served one client at a time so far, in ns. */
uint64_t device_singly_ns(const struct device *device);

#endif
