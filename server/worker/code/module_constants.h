/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module_constants: the constants of a module that was just loaded, and their twins in the client's
 * memory, which begin with the same contents.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_MODULE_CONSTANTS_H
#define GPUSHARE_SERVER_WORKER_CODE_MODULE_CONSTANTS_H

#include <stdbool.h>

#include "server/worker/calls/quiet_calls.h"
#include "server/worker/client/client.h"

struct client_module;
struct rewrite;

/*
 * Copies each constant to its twin; again: the twin to the constant, since an earlier worker had
 * them. Then enters the twins, so that commands write both. A constant that the driver does not
 * know, since no kernel uses it, has none. Takes client->lock. The thread that loads the module,
 * before any of its kernels can run. After a failure the module must be unloaded.
 */
cuda_result module_constants_settle(struct client *client, const struct client_module *module,
                                    cuda_module handle, const struct rewrite *rewrite,
                                    struct quiet_calls *calls, bool again);

#endif
