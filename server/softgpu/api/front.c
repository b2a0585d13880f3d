/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The front's operations, on the software GPU itself. */
#include "common/cuda/front/front.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_pool.h"
#include "common/devices_max.h"
#include "server/softgpu/api/api.h"
#include "server/softgpu/api/image.h"
#include "server/softgpu/api/module_object.h"
#include "server/softgpu/api/softgpu_exports.h"
#include "server/softgpu/memory/memory_extent.h"
#include "server/softgpu/memory/memory_heap.h"

_Static_assert((int)SETTINGS_MAX_DEVICES <= DEVICES_MAX, "");

/* ---- the library ---- */

static const struct front_row rows[] = {
#define E(name, symbol, version, params) {#name, version, (front_fn)symbol},
    SOFTGPU_EXPORTS(E)
#undef E
};
const struct front_row *const front_own_rows = rows;
const size_t front_own_row_count = sizeof rows / sizeof *rows;

static bool is_green(const char *name)
{
    return strncmp(name, "cuGreenCtx", 10) == 0 || strncmp(name, "cuDevResource", 13) == 0 ||
           strncmp(name, "cuDevSmResource", 15) == 0 || strcmp(name, "cuDeviceGetDevResource") == 0;
}

/* The newest driver that is modelled has what came later, too. */
bool front_offers(const char *name, int version)
{
    const int newest = device_driver_version();

    return (version <= newest || newest == CUDA_API_VERSION) &&
           !(is_green(name) && device_lacks_green_contexts());
}

/* ---- devices and contexts ---- */

int front_device_count(void)
{
    return device_check_initialized() == CUDA_OK ? (int)device_settings()->visible_count : -1;
}

/* Beside other processes, which the charges show. */
static cuda_result begin_context(const struct device *device)
{
    const struct softgpu_settings *settings = device_settings();
    const bool exclusive = settings->compute_mode != CUDA_COMPUTEMODE_DEFAULT;

    switch (charges_context_begin(memory_charges(), device->ordinal, settings->memory,
                                  settings->context_memory, exclusive)) {
    case 0:
        return CUDA_OK;
    case -EBUSY:
        return CUDA_ERR_DEVICE_UNAVAILABLE;
    default:
        return CUDA_ERR_OUT_OF_MEMORY;
    }
}

/* Host memory is everybody's, and goes with the last context of all devices. A device that is
 * entered meanwhile waits until it has gone. */
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned devices_in_use; /* under it */

static void keep_host_memory(void)
{
    pthread_mutex_lock(&host_lock);
    devices_in_use++;
    pthread_mutex_unlock(&host_lock);
}

static void drop_host_memory(void)
{
    pthread_mutex_lock(&host_lock);
    if (--devices_in_use == 0)
        memory_free_host();
    pthread_mutex_unlock(&host_lock);
}

cuda_result front_enter(cuda_device ordinal)
{
    struct device *device = device_at(ordinal);
    cuda_result result;

    DRIVER_TRY(device_check());
    if (!device)
        return CUDA_ERR_INVALID_DEVICE;
    /* As cuda.h says of cuCtxCreate. */
    if (device_settings()->compute_mode == CUDA_COMPUTEMODE_PROHIBITED)
        return CUDA_ERR_UNKNOWN;
    if (device_settings()->compute_mode != CUDA_COMPUTEMODE_DEFAULT && device_settings()->taken)
        return CUDA_ERR_DEVICE_UNAVAILABLE;
    keep_host_memory();
    engine_lock();
    result = begin_context(device);
    engine_unlock();
    if (result != CUDA_OK)
        drop_host_memory();
    return result;
}

/* The modules, the pools' blocks and the memory of a device without contexts. */
static void forget_objects(cuda_device ordinal, struct device *device)
{
    void (*unload)(struct device *) = atomic_load(&device->unload_modules);

    driver_pool_forget(ordinal);
    if (unload)
        unload(device);
    memory_free_device(device->ordinal);
    memory_heap_close(device->ordinal);
    drop_host_memory();
}

void front_leave(cuda_device ordinal)
{
    struct device *device = device_at(ordinal);

    engine_lock();
    stream_await_device(device); /* the context ends with its work done */
    charges_context_end(memory_charges(), device->ordinal);
    engine_unlock();
    forget_objects(ordinal, device);
}

/* ---- memory ---- */

/* Host memory is of the current context's device, or of the first one. */
static cuda_device device_of(const struct memory_place *place)
{
    cuda_context current = driver_context_top();

    if (!place->host)
        return device_visible(place->device);
    return current ? current->device : 0;
}

bool front_memory_find(uint64_t address, struct front_memory *memory)
{
    struct memory_place place;

    if (!memory_locate(address, &place) || place.heap)
        return false;
    *memory = (struct front_memory){.address = place.start,
                                    .bytes = place.end - place.start,
                                    .id = place.id,
                                    .kind = place.host      ? FRONT_HOST
                                            : place.managed ? FRONT_MANAGED
                                                            : FRONT_DEVICE,
                                    .mapped = true,
                                    .device = device_of(&place)};
    return true;
}

bool front_memory_fillable(uint64_t address, size_t bytes, bool *host)
{
    struct memory_place place;

    if (!memory_accessible(address, bytes, MEMORY_WRITE) || !memory_locate(address, &place))
        return false;
    *host = place.host || place.managed;
    return true;
}

/* ---- streams ---- */

cuda_result front_stream_find(cuda_stream handle, struct front_stream *found)
{
    struct stream *stream;

    DRIVER_TRY(api_stream(handle, &stream));
    *found = (struct front_stream){.device = device_visible(stream->device->ordinal),
                                   .flags = stream->flags,
                                   .priority = stream->priority,
                                   .id = stream->id,
                                   .green = stream->green,
                                   .note = &stream->note};
    return CUDA_OK;
}

/* ---- modules ---- */

cuda_result front_module_load(cuda_device ordinal, const struct front_image *image,
                              cuda_module *module)
{
    struct module_request request = {.image = image->image,
                                     .standing = true,
                                     .count = image->count,
                                     .options = image->options,
                                     .values = image->values};
    char *text = NULL;
    size_t bytes;

    DRIVER_TRY(device_check());
    if (image->path) {
        DRIVER_TRY(image_read(image->path, &text, &bytes));
        request.image = text;
    }
    cuda_result result = module_object_load(device_at(ordinal), &request, module);
    free(text);
    return result;
}

cuda_result front_module_device(cuda_module module, cuda_device *device)
{
    if (!module || module->magic != MODULE_MAGIC)
        return CUDA_ERR_INVALID_HANDLE;
    *device = device_visible(module->device->ordinal);
    return CUDA_OK;
}

cuda_result front_function_device(cuda_function function, cuda_device *device)
{
    DRIVER_TRY(module_object_check_function(function));
    return front_module_device(function->module, device);
}

cuda_result front_function_note(cuda_function function, void ***note)
{
    DRIVER_TRY(module_object_check_function(function));
    *note = &function->note;
    return CUDA_OK;
}
