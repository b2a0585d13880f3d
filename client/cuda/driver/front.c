/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The front's operations, through the engine. */
#include "common/cuda/front/front.h"

#include <string.h>

#include "client/cuda/driver/base/driver_connection.h"
#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_image.h"
#include "client/cuda/driver/base/driver_registered.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/base/driver_stream.h"
#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "client/engine/module.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/jit_log.h"

/* ---- the library ---- */

/* The server refuses to serve a library that has this symbol: it would be its own client. */
extern API const int gpushare_dropin_marker;
const int gpushare_dropin_marker = 1;

const struct front_row *const front_own_rows = NULL;
const size_t front_own_row_count = 0;

bool front_offers(const char *name, int version)
{
    (void)name;
    (void)version;
    return true;
}

cuda_result front_check(void)
{
    if (driver_host_fn_is_caller())
        return CUDA_ERR_NOT_PERMITTED;
    return driver_device_count() < 0 ? CUDA_ERR_NOT_INITIALIZED : CUDA_OK;
}

/* ---- devices and contexts ---- */

int front_device_count(void)
{
    return driver_device_count();
}

cuda_result front_enter(cuda_device ordinal)
{
    struct driver_device *device;
    gpushare_connection *connection;
    DRIVER_TRY(driver_device_get(ordinal, &device));
    return driver_device_connect(device, &connection);
}

void front_leave(cuda_device ordinal)
{
    struct driver_device *device;
    if (driver_device_get(ordinal, &device) == CUDA_OK)
        driver_device_disconnect(device);
}

/* ---- memory ---- */

static enum front_memory_kind kind_of(enum allocation_kind kind)
{
    switch (kind) {
    case ALLOCATION_HOST:
        return FRONT_HOST;
    case ALLOCATION_MANAGED:
        return FRONT_MANAGED;
    default:
        return FRONT_DEVICE;
    }
}

/* Registered memory is not mapped for the device, and counts as a host buffer of the first one. */
bool front_memory_find(uint64_t address, struct front_memory *memory)
{
    struct allocation found;
    *memory = (struct front_memory){.kind = FRONT_HOST, .registered = true};
    if (driver_registered_find(address, &memory->address, &memory->bytes))
        return driver_device_count() > 0;
    for (int i = 0; i < driver_device_count(); i++) {
        struct driver_device *device;
        if (driver_device_get(i, &device) != CUDA_OK)
            return false;
        gpushare_connection *connection = atomic_load(&device->connection);
        if (connection && allocation_find(&connection->allocations, address, &found)) {
            *memory = (struct front_memory){.address = found.address,
                                            .bytes = found.asked,
                                            .id = found.id,
                                            .kind = kind_of(found.kind),
                                            .mapped = true,
                                            .device = i};
            return true;
        }
    }
    return false;
}

bool front_memory_fillable(uint64_t address, size_t bytes, bool *host)
{
    gpushare_connection *connection;
    if (driver_connection_current(&connection) != CUDA_OK)
        return false;
    enum memory_kind kind = memory_classify(connection, address, bytes);
    *host = kind == MEMORY_HOST;
    return kind == MEMORY_DEVICE || kind == MEMORY_HOST;
}

/* It lies in the host's memory, which the device reaches at the same address: kernels go over the
 * bus for it, and it counts as the client's pinned memory. */
cuda_result front_managed_alloc(cuda_device_ptr *ptr, size_t bytes)
{
    gpushare_connection *connection;
    void *buffer;
    DRIVER_TRY(driver_connection_current(&connection));
    DRIVER_TRY(driver_result(memory_managed_alloc(connection, bytes, &buffer)));
    *ptr = (uint64_t)(uintptr_t)buffer;
    return CUDA_OK;
}

/* ---- streams ---- */

/* No stream is of a green context. */
cuda_result front_stream_find(cuda_stream handle, struct front_stream *found)
{
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    const struct driver_device *device = driver_device_of(stream->connection);
    if (!device)
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    *found = (struct front_stream){.device = device->ordinal,
                                   .flags = stream->flags,
                                   .priority = stream->priority,
                                   .id = stream->id,
                                   .note = &stream->note};
    return CUDA_OK;
}

/* ---- modules ---- */

static cuda_result load(gpushare_connection *connection, const struct front_image *image,
                        gpushare_module **loaded)
{
    const void *bytes = image->image;
    if (image->path)
        return driver_connection_load_file(connection, image->path, loaded);
    size_t size = driver_image_measure(&bytes);
    return size ? driver_connection_load(connection, bytes, size, loaded) : CUDA_ERR_INVALID_IMAGE;
}

cuda_result front_module_load(cuda_device ordinal, const struct front_image *image,
                              cuda_module *module)
{
    struct driver_device *device;
    gpushare_connection *connection;
    gpushare_module *loaded = NULL;
    DRIVER_TRY(driver_device_get(ordinal, &device));
    DRIVER_TRY(driver_device_connect(device, &connection));
    DRIVER_TRY(driver_connection_check(connection));
    cuda_result result = load(connection, image, &loaded);
    jit_log_write(image->count, image->options, image->values,
                  result == CUDA_OK ? "" : failure_sentence());
    *module = (cuda_module)loaded;
    return result;
}

static cuda_result find_device(const gpushare_connection *connection, cuda_device *device)
{
    const struct driver_device *found = driver_device_of(connection);
    if (!found)
        return driver_device_count() < 0 ? CUDA_ERR_NOT_INITIALIZED : CUDA_ERR_CONTEXT_IS_DESTROYED;
    *device = found->ordinal;
    return CUDA_OK;
}

cuda_result front_module_device(cuda_module module, cuda_device *device)
{
    return module ? find_device(((struct gpushare_module *)module)->connection, device)
                  : CUDA_ERR_INVALID_HANDLE;
}

cuda_result front_function_device(cuda_function function, cuda_device *device)
{
    if (!function)
        return CUDA_ERR_INVALID_HANDLE;
    gpushare_connection *connection = ((struct gpushare_function *)function)->connection;
    DRIVER_TRY(driver_connection_check(connection));
    return find_device(connection, device);
}

cuda_result front_function_note(cuda_function function, void ***note)
{
    cuda_device device;
    DRIVER_TRY(front_function_device(function, &device));
    *note = &((struct gpushare_function *)function)->note;
    return CUDA_OK;
}

cuda_result front_module_variable(cuda_module handle, const char *name, cuda_device_ptr *ptr,
                                  size_t *size, bool *managed)
{
    struct gpushare_module *module = (struct gpushare_module *)handle;
    uint64_t bytes;
    if (!module)
        return CUDA_ERR_INVALID_HANDLE;
    DRIVER_TRY(driver_connection_check(module->connection));
    if (!name || !*name || strlen(name) > PROTO_NAME_MAX)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_variable(module, name, ptr, &bytes, managed));
    *size = bytes;
    return CUDA_OK;
}
