/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module: loaded images and the kernels in them. A function is immutable once made
 * but for its shared-memory limit, so launches read it without a lock.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_MODULE_H
#define GPUSHARE_CLIENT_ENGINE_MODULE_H

#include <pthread.h>
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
    /* What a launch reads. */
    gpushare_connection *connection;
    uint32_t handle;
    uint32_t block_threads;
    uint32_t dynamic_shared; /* atomic; most that a launch may ask for */
    uint32_t parameters;
    uint32_t parameter_bytes;
    struct module_parameter *table;

    struct gpushare_module *module;
    struct gpushare_function_info info;
    struct gpushare_function *next; /* in the module */
    char name[];
};

/* At close: frees all modules and functions of the connection, without the server. */
void module_forget(gpushare_connection *connection);

#endif
