/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module: a client's code on the device, its kernels and its variables.
 *
 * An image is read (inspect), which says how much client memory its variables need;
 * then it is read again and loaded with its variables there: nothing that grew out of
 * it waits for memory meanwhile. CUmodules are never shared between clients.
 *
 * Control thread, but for what the loader's thread does with a busy module; what the
 * submitter looks at is changed under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_MODULE_H
#define GPUSHARE_SERVER_WORKER_CLIENT_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/worker/code_memory.h"
#include "server/worker/client.h"
#include "server/worker/refusal.h"

struct module;

/* A module of this number with nothing in it; what it keeps is the budget's. 0 or an error number.
 */
uint32_t module_new(struct client *client, uint32_t number, struct budget *budget,
                    struct module **module, struct refusal *why);

/*
 * Reads an image of count bytes from fd (which stays the caller's), and says what memory its
 * variables need. 0 or an error number.
 * Any one thread, while the module is busy.
 */
uint32_t module_inspect(const struct client *client, struct module *module, int fd, uint64_t count,
                        struct proto_worker_module_needs *needs, struct refusal *why);

/* Loads an inspected module, its variables at global_base. functions: 0 if the driver can't say.
 * Likewise. */
uint32_t module_load(struct client *client, struct module *module, uint64_t global_base,
                     uint32_t *functions, struct refusal *why);

/* Somebody inspects or loads it: nothing else may be done with it. */
bool module_busy(const struct module *module);
void module_set_busy(struct module *module, bool busy);

/* Inspected, and not loaded yet. */
bool module_loadable(const struct module *module);

/* NULL if there is none with this number. */
struct module *module_find(struct client *client, uint32_t number);

uint32_t module_number(const struct module *module);

/* The pending unload, or NULL. */
const struct memory_free *module_dying(const struct module *module);

/* From now on only commands that were issued before the request may name the module's kernels.
 * Under client->lock. */
void module_mark_dying(struct client *client, struct module *module,
                       const struct memory_free *request);

/* Unloads and forgets it, with all its kernels and variables. No work may use it any more. */
void module_destroy(struct client *client, struct module *module);
void module_destroy_all(struct client *client);

/*
 * Looks a kernel up by name (length bytes, no NUL) and gives it a handle. layout gets
 * info->parameters pairs of offset and size; PROTO_PARAMETER_COUNT_MAX of them have room.
 */
uint32_t module_function(struct client *client, uint32_t number, const char *name, size_t length,
                         struct proto_function_info *info, uint32_t *layout, struct refusal *why);
uint32_t module_function_set(struct client *client, uint32_t function, uint32_t value,
                             struct refusal *why);
uint32_t module_occupancy(struct client *client, const struct proto_occupancy_get *request,
                          uint32_t *blocks, struct refusal *why);

/* Looks a variable up. One outside the client's window becomes a valid target of its copies. */
uint32_t module_global(struct client *client, uint32_t number, const char *name, size_t length,
                       uint64_t *address, uint64_t *count, struct refusal *why);

#endif
