/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_module: a client's code on the device, its kernels and its variables.
 *
 * An image is read (inspect), which says how much client memory its variables need;
 * then it is read again and loaded with its variables there: nothing that grew out of
 * it waits for memory meanwhile. CUmodules are never shared between clients.
 *
 * Control thread, but for what the loader's thread does with a busy module; what the
 * submitter looks at is changed under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CLIENT_MODULE_H
#define GPUSHARE_SERVER_WORKER_CODE_CLIENT_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/worker/code/code_memory.h"
#include "server/worker/client/client.h"
#include "common/error.h"

struct client_module;

/* A module of this number with nothing in it; what it keeps is charged to code_memory. 0 or an
 * error number.
 */
uint32_t client_module_new(struct client *client, uint32_t number, struct code_memory *code_memory,
                           struct client_module **module, struct error *why);

/*
 * Reads an image of count bytes from fd (which stays the caller's), and says what memory its
 * variables need. 0 or an error number.
 * Any one thread, while the module is busy.
 */
uint32_t client_module_inspect(const struct client *client, struct client_module *module, int fd,
                               uint64_t count, struct proto_worker_module_needs *needs,
                               struct error *why);

/* Loads an inspected module, its variables at global_base. functions: 0 if the driver can't say.
 * 0 or an error number. Any one thread, while the module is busy. */
uint32_t client_module_load(struct client *client, struct client_module *module,
                            uint64_t global_base, uint32_t *functions, struct error *why);

/* Somebody inspects or loads it: nothing else may be done with it. */
bool client_module_is_busy(const struct client_module *module);
void client_module_set_busy(struct client_module *module, bool busy);

/* Inspected, and not loaded yet. */
bool client_module_is_loadable(const struct client_module *module);

/* NULL if there is none with this number. */
struct client_module *client_module_find(struct client *client, uint32_t number);

uint32_t client_module_number(const struct client_module *module);

/* The pending unload, or NULL. */
const struct retirement *client_module_dying(const struct client_module *module);

/* From now on only commands that were issued before the request may name the module's kernels.
 * Under client->lock. */
void client_module_mark_dying(struct client *client, struct client_module *module,
                              const struct retirement *request);

/* Unloads and forgets it, with all its kernels and variables. No work may use it any more. */
void client_module_destroy(struct client *client, struct client_module *module);
void client_module_destroy_all(struct client *client);

/*
 * Looks a kernel up by name (length bytes, no NUL) and gives it the handle `function`, which must
 * be free or this kernel's already. layout gets info->parameters pairs of offset and size;
 * PROTO_PARAMETER_COUNT_MAX of them have room.
 */
uint32_t client_module_function(struct client *client, uint32_t number, uint32_t function,
                                const char *name, size_t length, struct proto_function_info *info,
                                uint32_t *layout, struct error *why);
uint32_t client_module_function_set(struct client *client, uint32_t function, uint32_t value,
                                    struct error *why);
uint32_t client_module_occupancy(struct client *client, const struct proto_occupancy_get *request,
                                 uint32_t *blocks, struct error *why);

/* Looks a variable up. One outside the client's window becomes a valid target of its copies. */
uint32_t client_module_global(struct client *client, uint32_t number, const char *name,
                              size_t length, uint64_t *address, uint64_t *count, struct error *why);

#endif
