/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control: serves the supervisor's messages, and carries out what had to wait.
 *
 * The control thread is the worker's main thread. Calls of the driver that may take long belong
 * here, off the submitter's thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_H

#include "common/ipc/channel.h"
#include "server/worker/worker.h"

enum { CONTROL_SUPERVISOR_GONE = 1, CONTROL_CONTEXT_LOST = 2 };

/*
 * Sends device_info, then serves until the supervisor is gone or the context is lost; by then every
 * client's connection has been ended. Returns one of the two values above, or -errno.
 */
int control_serve(struct worker *worker);

/* Handles one message that was received; its descriptors that are left stay the caller's. Returns
 * 0, or -errno if no answer can be sent. For tests too. */
int control_handle(struct worker *worker, struct channel_message *message);

/* Carries out everything that became ready meanwhile: finished loads, frees, closed streams,
 * departures, violations to report. Returns 0, or -errno if a message can't be sent. */
int control_progress(struct worker *worker);

#endif
