/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * start_check: what is looked for when a worker starts that does not keep it from serving,
 * but that administrators should know: see the enumeration `warning` of the protocol.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_START_CHECK_H
#define GPUSHARE_SERVER_WORKER_DEVICE_START_CHECK_H

#include "protocol.h"
#include "server/worker/device/gpu.h"

typedef void start_check_warn(void *context, const struct proto_worker_warning *warning);

/* memory_operations: what the driver answered to one (batch_ends.h). Calls warn for each thing
 * found. The context is current in the calling thread, and no client is attached yet: the driver is
 * asked to load a module. */
void start_check_run(const struct gpu *gpu, cuda_result memory_operations, start_check_warn *warn,
                     void *context);

#endif
