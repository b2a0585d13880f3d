/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_trace: the supervisor's messages that begin and end a trace. Control thread. Functions
 * that return int answer the message and return 0, or -errno if no answer can be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_TRACE_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_TRACE_H

#include "server/worker/control/request.h"

/* Records that the device is shared in this mode from now on. */
void control_trace_mode(struct worker *worker, uint32_t mode);

int control_trace_start(struct request *request);
int control_trace_stop(struct request *request);

#endif
