/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_record: a device with its worker as it is kept for another server, and the way back. A
 * worker that did not serve yet is ended, and the next one is started. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_RECORD_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/keep/keeper.h"

struct device;

/* Stands for the form of the record, and of the messages to the worker that is taken over. */
uint32_t device_record_layout(void);

void device_record_put(struct device *device, struct keeper *keeper, uint16_t kind);

/* Whether its worker's socket, process and barrier were passed, as far as the record names them. */
bool device_record_is_whole(const struct keeper *keeper, const struct state_log_entry *entry);

/* Takes over what a record says, the worker included. Returns 0 or -errno: device->trouble says
 * why, and no worker is left. */
int device_record_read(struct device *device, struct keeper *keeper,
                       const struct state_log_entry *entry);

#endif
