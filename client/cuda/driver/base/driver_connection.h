/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_connection: the connections on which CUDA's contexts stand. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_CONNECTION_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_CONNECTION_H

#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"
#include "common/cuda/front/front.h"

/* Gives the connection of the thread's current context, checked: it can be used now. Returns
 * CUDA_ERR_NOT_INITIALIZED, CUDA_ERR_INVALID_CONTEXT, CUDA_ERR_CONTEXT_IS_DESTROYED or the sticky
 * error that ended it. */
cuda_result driver_connection_current(gpushare_connection **connection);

/* The same for the connection of a context, of which NULL is the current one; for the connection of
 * an object; and without one. */
cuda_result driver_connection_of(cuda_context context, gpushare_connection **connection);
static inline cuda_result driver_connection_check(gpushare_connection *connection);

/* A function of the program must not call CUDA: one that ended a context would wait for itself. */
static inline cuda_result driver_connection_check(gpushare_connection *connection)
{
    if (driver_host_fn_is_caller())
        return CUDA_ERR_NOT_PERMITTED;
    const struct driver_device *device = driver_device_of(connection);
    if (!device) /* none is known in a forked child */
        return driver_device_count() < 0 ? CUDA_ERR_NOT_INITIALIZED : CUDA_ERR_CONTEXT_IS_DESTROYED;
    int lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    return lost ? (cuda_result)lost : driver_result(connection_check(connection));
}

/* CUDA's number for an error of work on a connection: from a lost launch on, every later call
 * returns the same. */
cuda_result driver_connection_failure(gpushare_connection *connection, gpushare_error error)
    __attribute__((cold));

/* The result of work on a connection. */
static inline cuda_result driver_connection_result(gpushare_connection *connection,
                                                   gpushare_error error)
{
    driver_host_fn_order();
    return __builtin_expect(error == GPUSHARE_SUCCESS, 1)
               ? CUDA_OK
               : driver_connection_failure(connection, error);
}

/* A thread has waited for work of the connection: its device's pools release what they need not
 * keep. */
void driver_connection_settle(const gpushare_connection *connection);

/* Behind a call that failed: has the pools of the connection's device give their freed blocks back,
 * if memory was short. Returns whether some came back, so that the call is worth a second try. */
bool driver_connection_give_back(const gpushare_connection *connection, gpushare_error error);

/* A thread has waited for work of the connection: shows what its kernels have printed. all: for all
 * of its work. */
void driver_connection_show(const gpushare_connection *connection, bool all);

/* Waits for all work of the connection if its kernels may have printed, and shows that. */
cuda_result driver_connection_finish(gpushare_connection *connection);

/* Load and unload modules of the connection's device, as driver_managed does. */
cuda_result driver_connection_load(gpushare_connection *connection, const void *image, size_t bytes,
                                   gpushare_module **module);
cuda_result driver_connection_load_file(gpushare_connection *connection, const char *path,
                                        gpushare_module **module);
cuda_result driver_connection_unload(gpushare_module *module);

/* Finds a variable of a module. Returns CUDA_ERR_NOT_FOUND too. *managed: whether it is a managed
 * one. */
cuda_result driver_connection_variable(gpushare_module *module, const char *name,
                                       gpushare_address *address, uint64_t *bytes, bool *managed);

#endif
