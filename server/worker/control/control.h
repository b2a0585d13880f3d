/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control: serves the supervisor's messages, and carries out what had to wait.
 *
 * The worker's main thread. Driver calls that may take long belong here, off the
 * submit thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_H

#include "common/ipc/channel.h"
#include "server/worker/worker.h"

enum { CONTROL_SUPERVISOR_GONE = 1, CONTROL_CONTEXT_LOST = 2 };

/*
 * Says device_info, then serves until the supervisor is gone or the context is
 * lost; by then every client's connection has been ended. Returns one of the two,
 * or -errno.
 */
int control_serve(struct worker *worker);

/* One message, already received. 0; -errno if no answer can be sent. For tests too. */
int control_handle(struct worker *worker, struct channel_message *message);

/* Carries out everything that became ready meanwhile: frees, closed streams, departures,
 * violations to report. */
int control_progress(struct worker *worker);

#endif
