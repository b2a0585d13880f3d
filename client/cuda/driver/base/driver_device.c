/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_device.h"

#include <string.h>

#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_registered.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/base/driver_wait.h"
#include "client/engine/connect.h"
#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "client/session/device.h"
#include "client/session/warning.h"
#include "common/cuda/front/driver_pool.h"
#include "common/log.h"
#include "common/messages.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct driver_device driver_devices[DEVICES_MAX];
atomic_int driver_devices_known = -1;
static atomic_bool forked; /* by a process that knew its devices */

static cuda_result describe_all(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct gpushare_options options = {.size = sizeof options, .device = i};
        DRIVER_TRY(driver_result(device_query(&options, &driver_devices[i].described)));
        driver_devices[i].ordinal = (cuda_device)i;
        pthread_mutex_init(&driver_devices[i].lock, NULL);
        pthread_mutex_init(&driver_devices[i].print.lock, NULL);
        pthread_mutex_init(&driver_devices[i].managed.lock, NULL);
    }
    return CUDA_OK;
}

/* A count of 0 is no error to the library. The refusal of a device says which variable hides it. */
static cuda_result say_hidden(const struct gpushare_options *options)
{
    struct gpushare_device none;
    cuda_result result = driver_result(device_query(options, &none));
    return result == CUDA_OK ? CUDA_ERR_NO_DEVICE : result;
}

/* Connections, streams and memory are the parent's. The child has them in no part, as with CUDA's
 * driver, and each of its calls says so. */
static void leave_to_parent(void)
{
    atomic_store(&forked, true);
    atomic_store(&driver_devices_known, -1);
}

static cuda_result survey(void)
{
    const struct gpushare_options options = {.size = sizeof options};
    uint32_t count;
    DRIVER_TRY(driver_result(device_count(&options, &count)));
    if (!count)
        return say_hidden(&options);
    DRIVER_TRY(describe_all(count));
    if (pthread_atfork(NULL, NULL, leave_to_parent))
        return CUDA_ERR_OUT_OF_MEMORY;
    /* Release: the descriptions are there. */
    atomic_store_explicit(&driver_devices_known, (int)count, memory_order_release);
    return CUDA_OK;
}

cuda_result driver_device_survey(void)
{
    if (atomic_load(&forked))
        return CUDA_ERR_NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    cuda_result result = driver_device_count() >= 0 ? CUDA_OK : survey();
    pthread_mutex_unlock(&lock);
    return result;
}

cuda_result driver_device_get(cuda_device ordinal, struct driver_device **device)
{
    int count = driver_device_count();
    if (count < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= count)
        return CUDA_ERR_INVALID_DEVICE;
    *device = &driver_devices[ordinal];
    return CUDA_OK;
}

/* A CUDA program has no other way to learn that the name of its limit has a typing error. */
static void say_warning(void *context, const char *text)
{
    (void)context;
    log_warning(MESSAGE_TEXT(tool_warning), text);
}

/* The lock is held. A context that comes back has the warnings of the first. */
static cuda_result connect_device(struct driver_device *device, gpushare_connection **connection)
{
    const struct gpushare_options options = {
        .size = sizeof options,
        .device = (uint32_t)device->ordinal,
        .warn = !device->warned && warning_wanted() ? say_warning : NULL,
    };
    *connection = atomic_load_explicit(&device->connection, memory_order_relaxed);
    if (*connection)
        return CUDA_OK;
    DRIVER_TRY(driver_result_refused(connect_open(&options, connection)));
    /* CUDA promises nothing about what new memory holds. */
    memory_keep_freed(*connection);
    device->warned = true;
    atomic_store_explicit(&device->connection, *connection, memory_order_release);
    return CUDA_OK;
}

cuda_result driver_device_connect(struct driver_device *device, gpushare_connection **connection)
{
    *connection = atomic_load_explicit(&device->connection, memory_order_acquire);
    if (*connection)
        return CUDA_OK;
    pthread_mutex_lock(&device->lock);
    cuda_result result = connect_device(device, connection);
    pthread_mutex_unlock(&device->lock);
    return result;
}

void driver_device_disconnect(struct driver_device *device)
{
    gpushare_connection *connection = atomic_exchange(&device->connection, NULL);
    atomic_store(&device->lost, 0);
    if (!connection)
        return;
    /* Functions behind a wait that is not over would never be called. */
    if (driver_wait_forget(connection))
        connection_give_up(connection);
    driver_host_fn_drain(connection);
    driver_print_forget(&device->print, connection);
    driver_managed_forget(&device->managed);
    driver_stack_forget(&device->stack);
    driver_pool_forget(device->ordinal);
    driver_registered_forget(device->ordinal);
    device->host_stream = NULL;
    connect_close(connection);
}
