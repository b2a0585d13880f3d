/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_schedule: how a device's clients share it: what the worker is asked for, and what is in
 * force. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_SCHEDULE_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_SCHEDULE_H

#include "server/supervisor/account/change_done.h"
#include "server/supervisor/config/schedule.h"

struct device;

/* Tells a new worker how its clients share the device, before it hears of any client. */
void device_schedule_begin(struct device *device);

/* Tells the worker again, since the device serves one client at a time, or does no more. Returns 0
 * and `done` follows from the loop; or -errno. */
int device_schedule_tell(struct device *device, change_done *done, void *context);

/* Changes parts of the schedule; results and done as for change_schedule. The supervisor's parts
 * are in force at once, whatever the worker answers about the others. */
int device_schedule_set(struct device *device, const struct schedule *to, unsigned parts,
                        const struct change_asker *asker);

#endif
