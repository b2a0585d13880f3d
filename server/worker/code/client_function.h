/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_function: a client's kernels: their numbers, and what their launches need to know.
 *
 * A question to the driver has three parts, as client_module.h says: the control thread begins it
 * by client_module_lookup, any one thread that may wait for the context asks, and the control
 * thread enters what was found. Functions that return uint32_t return 0, or an error number with a
 * sentence in why.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CLIENT_FUNCTION_H
#define GPUSHARE_SERVER_WORKER_CODE_CLIENT_FUNCTION_H

#include <stdint.h>

#include "common/error.h"
#include "server/worker/client/client.h"
#include "server/worker/code/client_module.h"

/* Looks the kernel up, and gives it the number `function`, which must be free or this kernel's
 * already. */
uint32_t client_function_ask(const struct client *client, struct client_module_lookup *lookup,
                             struct error *why);
uint32_t client_function_enter(struct client *client, uint32_t function,
                               struct client_module_lookup *lookup, struct error *why);

/* Gives the number to a kernel of a module that is lost, so that launches of it are known for what
 * they are. Takes client->lock. Control thread. */
uint32_t client_function_enter_lost(struct client *client, uint32_t number,
                                    struct client_module *module, struct error *why);

/* Copies a kernel that has a number; one of a lost module is refused. Control thread. */
uint32_t client_function_usable(const struct client *client, uint32_t number,
                                struct function *function, struct error *why);

/* Set the most dynamic shared memory of kernel `number` in the copy, and say how many of its blocks
 * fit on a multiprocessor. Any thread that may wait for the context. */
uint32_t client_function_set_dynamic(const struct client *client, struct function *function,
                                     uint32_t number, uint32_t bytes, struct error *why);
uint32_t client_function_occupancy(const struct client *client, const struct function *function,
                                   const struct proto_occupancy_get *wanted, uint32_t *blocks,
                                   struct error *why);

#endif
