/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module: loaded images and the kernels in them. After a function was made, only its shared-memory
 * limit changes, so launches read it without a lock. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_MODULE_H
#define GPUSHARE_CLIENT_ENGINE_MODULE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "common/list.h"

struct gpushare_module {
    gpushare_connection *connection;
    uint32_t handle;
    pthread_mutex_t lock;                /* guards the list of functions */
    struct gpushare_function *functions; /* none leaves before the module */
    struct list_link in_connection;      /* in connection->modules */
    void *note;                          /* a caller's own; freed with the module */
};

struct module_parameter {
    uint16_t offset, bytes;
};

/* More than the questions of a search for the best block, in all sizes that are whole warps. */
enum { MODULE_OCCUPANCIES = 64 };

struct gpushare_function {
    /* Read by every launch. */
    gpushare_connection *connection;
    uint32_t handle;
    uint32_t block_threads;
    _Atomic uint32_t dynamic_shared; /* most that a launch may ask for */
    _Atomic uint32_t losses_seen;    /* how many modules were lost when its kernels might run */
    uint32_t parameters;
    uint32_t parameter_bytes;
    struct module_parameter *table;

    struct gpushare_module *module;
    _Atomic uint64_t occupancies[MODULE_OCCUPANCIES]; /* module_query_occupancy's answers; or 0 */
    struct gpushare_function_info info;
    void *note;                     /* a caller's own; freed with the function */
    struct gpushare_function *next; /* in the module */
    char name[];
};

/*
 * Loads an image of `bytes` bytes, at least 1, into the server. *module is written on success only,
 * and lives until module_unload or the end of the connection. Returns as gpushare_module_load.
 */
gpushare_error module_load_image(gpushare_connection *connection, const void *image, size_t bytes,
                                 gpushare_module **module);

/* The same from a file. NOT_FOUND if it can't be opened or read. */
gpushare_error module_load_file(gpushare_connection *connection, const char *path,
                                gpushare_module **module);

/* Unloads and frees a module with its functions. They are freed even if the server can't be
 * asked, and then its error is returned. */
gpushare_error module_unload(gpushare_module *module);

/*
 * Finds a kernel by its name, which has 1 to PROTO_NAME_MAX bytes. The server is asked once for
 * each name. *function belongs to the module; all calls for one name, also of several threads, give
 * the same one. Returns NOT_FOUND if the module has no such kernel.
 */
gpushare_error module_find_function(gpushare_module *module, const char *name,
                                    gpushare_function **function);

/* Finds a variable of the module and gives its address and size. From then on copies accept its
 * range. Returns NOT_FOUND if there is none. */
gpushare_error module_find_variable(gpushare_module *module, const char *name,
                                    gpushare_address *address, uint64_t *bytes);

/*
 * Asks the server whether the kernel may run: neither the state of its module was lost with a
 * worker, nor that of another module whose addresses it might follow. Returns STATE_LOST
 * otherwise. To be called when status_header.modules_lost differs from losses_seen.
 */
gpushare_error module_check_function(gpushare_function *function) __attribute__((cold));

/* Returns STATE_LOST for an address in a variable that lay in the driver's memory, if its module is
 * such a one. The server is asked only where that is possible. */
gpushare_error module_check_variable(gpushare_connection *connection, gpushare_address address);

/* Writes the whole attributes of a kernel, without asking the server. */
void module_function_info(const gpushare_function *function, struct gpushare_function_info *info);

/* Sets the most bytes of dynamic shared memory that launches of this kernel may ask for. Returns
 * INVALID_VALUE if the device does not allow so many. */
gpushare_error module_set_shared(gpushare_function *function, uint32_t bytes);

/* Asks the server how many blocks of a kernel one multiprocessor holds, unless it has
 * answered the same. block_threads: at least 1. shared: bytes of dynamic shared memory of a block.
 */
gpushare_error module_query_occupancy(gpushare_function *function, uint32_t block_threads,
                                      uint32_t shared, uint32_t *blocks);

/* At close: frees all modules and functions of the connection, without the server. */
void module_delete_all(gpushare_connection *connection);

#endif
