/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_memory: the messages about a client's device memory and host buffers, and about the end
 * of its work. Control thread. Each function returns 0, or -errno if no answer can be sent. New
 * device memory is answered for when it has been cleared.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_MEMORY_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_MEMORY_H

#include "server/worker/control/request.h"

int control_memory_map(struct request *request);
int control_memory_remap(struct request *request);
int control_memory_unmap(struct request *request);
int control_memory_host_map(struct request *request);
int control_memory_host_unmap(struct request *request);
int control_memory_host_keep(struct request *request);
int control_memory_quiesce(struct request *request);

/* Answers control_memory_map when the clearer is done with the job, which stays the caller's. */
int control_memory_cleared(struct worker *worker, const struct loader_job *job);

/* About the device, and no client: how much of its memory is free. */
int control_memory_available(struct request *request);

#endif
