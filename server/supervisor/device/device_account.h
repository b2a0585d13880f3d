/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* device_account: tells a device's worker what the clients of an account may have together. Loop
 * thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_ACCOUNT_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_ACCOUNT_H

#include <stdint.h>

#include "protocol.h"
#include "server/supervisor/account/change_done.h"
#include "server/supervisor/device/device.h"

/*
 * Asks for this share. Returns 1 where there is no worker: its successor is told when clients come.
 * Returns 0 if the worker is asked: done is then called exactly once, with `number`, from the loop
 * and never before this function returns. A worker that is lost meanwhile counts as done. Returns
 * -errno: done is not called.
 */
int device_account_set(struct device *device, const struct proto_worker_account *account,
                       uint32_t number, change_done *done, void *context);

/* Tells it before a client of the account attaches. If the worker refuses, the account's limits
 * hold without its requests, and the log says why. Returns 0 or -errno. */
int device_account_tell(struct device *device, const struct proto_worker_account *account);

#endif
