/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_kept: the messages about host buffers that the worker keeps between two clients. Control
 * thread. Each function returns 0, or -errno if no answer can be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_KEPT_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_KEPT_H

#include "server/worker/control/request.h"

/* worker_host_lend, about a client. */
int control_kept_lend(struct request *request);

/* worker_host_drop, about no client: answers when the buffer was given back in a quiet window. */
int control_kept_drop(struct request *request);

#endif
