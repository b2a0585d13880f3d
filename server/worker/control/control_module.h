/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_module: the messages about a client's modules and what is in them.
 *
 * The loader reads and compiles, so inspect and load are answered when the loader is done. Control
 * thread. Each function returns 0, or -errno if no answer can be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_MODULE_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_MODULE_H

#include "server/worker/control/request.h"

int control_module_inspect(struct request *request);
int control_module_load(struct request *request);
int control_module_lost(struct request *request);
int control_function_lost(struct request *request);
int control_module_unload(struct request *request);
int control_function_get(struct request *request);
int control_function_set(struct request *request);
int control_global_get(struct request *request);
int control_occupancy_get(struct request *request);

/* Answers the requests that the loaders are done with: modules, and new memory that was cleared. */
int control_module_finish(struct worker *worker);

#endif
