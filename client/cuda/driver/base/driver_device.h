/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_device: the devices that this process sees, and the one connection that it has to each.
 *
 * A device is known from cuInit on, as the server describes it to anybody. The connection is made
 * when something asks for what only a client has: its share, or a context. All contexts of a device
 * share it, so their objects are of one kind. It is closed with the device's last context.
 *
 * Any thread. As in CUDA, nobody may use a device while another thread destroys its last context.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_DEVICE_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "client/cuda/driver/base/driver_stack.h"
#include "client/cuda/driver/managed/driver_managed.h"
#include "client/cuda/driver/print/driver_print.h"
#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"

struct gpushare_stream;

struct driver_device {
    cuda_device ordinal;
    struct gpushare_device described; /* whole, as for no client */
    pthread_mutex_t lock;             /* guards the making of the connection */
    _Atomic(gpushare_connection *) connection;
    bool warned; /* of what the environment asks for in vain; under the lock */
    /* 0, or the sticky result of all calls on the device until the connection is closed: work of
     * this client was lost, and CUDA has no way to go on from there. */
    _Atomic int lost;
    /* The stream in which functions of the program are known to have returned, and the value of its
     * last command, which may not be pushed yet; driver_host_fn's. */
    struct gpushare_stream *host_stream;
    uint64_t host_value;
    struct driver_print print;
    struct driver_managed managed;
    struct driver_stack stack;
};

/* Read by the functions below alone. */
extern struct driver_device driver_devices[];
extern atomic_int driver_devices_known;

/* Asks the server which devices there are, once. Returns 0, CUDA_ERR_NO_DEVICE, or why the server
 * can't be asked; the next call tries again. A child of a process that knew its devices gets
 * CUDA_ERR_NOT_INITIALIZED for good. */
cuda_result driver_device_survey(void);

/* Number of devices; -1 before driver_device_survey has succeeded. */
static inline int driver_device_count(void)
{
    return atomic_load_explicit(&driver_devices_known, memory_order_acquire);
}

/* Gives a device. Returns CUDA_ERR_NOT_INITIALIZED or CUDA_ERR_INVALID_DEVICE. */
cuda_result driver_device_get(cuda_device ordinal, struct driver_device **device);

/* Gives the device's connection, and makes it first if there is none. */
cuda_result driver_device_connect(struct driver_device *device, gpushare_connection **connection);

/* Waits for the program's functions that run in the order of streams, and closes the connection
 * with all that the device's contexts had; no context stands on the device, and none begins to. */
void driver_device_disconnect(struct driver_device *device);

/* The device whose connection this is. NULL: of none any more. */
static inline struct driver_device *driver_device_of(const gpushare_connection *connection)
{
    for (int i = 0; i < driver_device_count(); i++)
        if (atomic_load_explicit(&driver_devices[i].connection, memory_order_acquire) == connection)
            return &driver_devices[i];
    return NULL;
}

#endif
