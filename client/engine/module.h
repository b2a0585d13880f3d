/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module: loaded images and the kernels in them. Of a function only the shared-memory limit
 * changes once it is made, so launches read it without a lock. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_MODULE_H
#define GPUSHARE_CLIENT_ENGINE_MODULE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gpushare.h"

struct gpushare_module {
    gpushare_connection *connection;
    uint32_t handle;
    pthread_mutex_t lock; /* functions */
    struct gpushare_function *functions;
    struct gpushare_module *next; /* in connection->modules */
};

struct module_parameter {
    uint16_t offset, bytes;
};

struct gpushare_function {
    /* A launch reads these. */
    gpushare_connection *connection;
    uint32_t handle;
    uint32_t block_threads;
    _Atomic uint32_t dynamic_shared; /* most that a launch may ask for */
    uint32_t parameters;
    uint32_t parameter_bytes;
    struct module_parameter *table;

    struct gpushare_module *module;
    struct gpushare_function_info info;
    struct gpushare_function *next; /* in the module */
    char name[];
};

/*
 * Hands an image of `bytes` bytes, at least 1, to the server. *module is written on success
 * only, and lives until module_unload or the end of the connection. Errors as
 * gpushare_module_load.
 */
gpushare_error module_load_image(gpushare_connection *connection, const void *image, size_t bytes,
                                 gpushare_module **module);

/* The same from a file. NOT_FOUND if it can't be opened or read. */
gpushare_error module_load_file(gpushare_connection *connection, const char *path,
                                gpushare_module **module);

/* Unloads and frees it, with its functions; freed even where the server can't be asked. */
gpushare_error module_unload(gpushare_module *module);

/*
 * name: of 1 to PROTO_NAME_MAX bytes. Asks the server at the first call for a name. *function
 * is the module's: two calls, of two threads too, give the same one. NOT_FOUND.
 */
gpushare_error module_find_function(gpushare_module *module, const char *name,
                                    gpushare_function **function);

/* The same for a variable: its address and size. Copies know it from then on. */
gpushare_error module_find_variable(gpushare_module *module, const char *name,
                                    gpushare_address *address, uint64_t *bytes);

/* Attributes, whole. Asks the server nothing. */
void module_function_info(const gpushare_function *function, struct gpushare_function_info *info);

/* Sets how many bytes of dynamic shared memory launches may ask for. INVALID_VALUE. */
gpushare_error module_set_shared(gpushare_function *function, uint32_t bytes);

/* How many blocks one multiprocessor holds. block_threads: at least 1; shared: bytes a block. */
gpushare_error module_query_occupancy(gpushare_function *function, uint32_t block_threads,
                                      uint32_t shared, uint32_t *blocks);

/* At close: frees all modules and functions of the connection, without the server. */
void module_delete_all(gpushare_connection *connection);

#endif
