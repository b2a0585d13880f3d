/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_module: a client's code on the device, and its variables. Its kernels are in
 * client_function.h, and module_load.h brings the code there.
 *
 * The supervisor has an image inspected first, which says how much client memory its variables
 * need. Then the image is read again and loaded, with its variables in that memory. Between the two
 * nothing that was made from the image stays in memory. CUmodules are never shared between clients.
 *
 * A module is busy while a loader thread inspects or loads it, and only that thread touches it
 * then. All else is for the control thread, which changes under client->lock what the submitter
 * looks at. Functions that return uint32_t return 0, or an error number with a sentence in why.
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

/* Makes an empty module with this number, which the client owns. code_memory, which must outlive
 * the module, is charged for what the module keeps. */
uint32_t client_module_new(struct client *client, uint32_t number, struct code_memory *code_memory,
                           struct client_module **module, struct error *why);

/* Makes a module of which an earlier worker had what this one can't have, to be unloaded only. */
uint32_t client_module_new_lost(struct client *client, uint32_t number, enum proto_unsaved unsaved,
                                struct code_memory *code_memory, struct error *why);

/* Whether it is such a one. Under client->lock, or the control thread. */
bool client_module_is_lost(const struct client_module *module);

/* Whether its kernels must not run: it is lost, or they might follow an address of what a lost
 * module had (common/state_lost.h). Under client->lock, or the control thread. */
bool client_module_reaches_lost(const struct client *client, const struct client_module *module);

/* Sets the refusal of such a module. Returns its number. */
uint32_t client_module_refuse_lost(const struct client_module *module, struct error *why);

/* Gives the driver back what it has of the module. In a quiet window; nothing launches its kernels
 * any more. Idempotent. */
void client_module_unload(struct client *client, struct client_module *module);
void client_module_unload_all(struct client *client);

/* Whether a loader inspects or loads the module: nothing else may be done with it then. */
bool client_module_is_busy(const struct client_module *module);
void client_module_set_busy(struct client_module *module, bool busy);

/* Whether the module is inspected, not loaded and not busy. */
bool client_module_is_loadable(const struct client_module *module);

/* The client's module with this number, or NULL. */
struct client_module *client_module_find(struct client *client, uint32_t number);

uint32_t client_module_number(const struct client_module *module);

/* NULL: the module is not loaded. */
cuda_module client_module_handle(const struct client_module *module);

/* Finds offset and size of each parameter of a kernel in the code itself, for drivers that can't
 * say them: *count pairs in layout, and where the last one ends. Returns false if the code has no
 * such kernel or does not say it. Any thread, while the module stays loaded. */
bool client_module_layout(const struct client_module *module, const char *name, uint32_t *layout,
                          uint32_t *count, uint64_t *end);

/* The request that unloads the module, or NULL. Under client->lock, or the control thread. */
const struct retirement *client_module_dying(const struct client_module *module);

/* From now on only commands that were issued before the request may name the module's kernels.
 * Under client->lock. */
void client_module_mark_dying(struct client *client, struct client_module *module,
                              const struct retirement *request);

/* Unloads and frees a module, with all its kernels and variables; client_module_destroy_all does
 * so for each module of a client. No work may use them any more. Take client->lock. */
void client_module_destroy(struct client *client, struct client_module *module);
void client_module_destroy_all(struct client *client);

/*
 * Questions to the driver about a module. The control thread begins one: it checks the client's
 * words and finds the module, which must not be unloaded until the end. Any one thread that may
 * wait for the context asks the driver. The control thread enters what was found.
 */
struct client_module_lookup {
    const struct client_module *module;
    char name[PROTO_NAME_MAX + 1];
    struct function function;
    struct proto_function_info info;
    uint32_t layout[2 * PROTO_PARAMETER_COUNT_MAX]; /* info.parameters pairs of offset and size */
    uint64_t address, count;                        /* of a variable */
};

/* By a name of `length` bytes without NUL. */
uint32_t client_module_lookup(struct client *client, uint32_t module, const char *name,
                              size_t length, struct client_module_lookup *lookup,
                              struct error *why);

/* Returns true if the variable was moved into the client's memory, so that nothing has to be asked
 * or entered. Control thread. */
bool client_module_knows_global(struct client_module_lookup *lookup);

/* Looks the variable up. One outside the client's window becomes a valid target of its copies. */
uint32_t client_module_ask_global(const struct client *client, struct client_module_lookup *lookup,
                                  struct error *why);
uint32_t client_module_enter_global(struct client *client,
                                    const struct client_module_lookup *lookup, struct error *why);

#endif
