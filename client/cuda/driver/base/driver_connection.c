/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_connection.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_kernels.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/module.h"
#include "common/cuda/fatbin.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_pool.h"

cuda_result driver_connection_of(cuda_context handle, gpushare_connection **connection)
{
    cuda_context context;
    struct driver_device *device;
    DRIVER_TRY(driver_context_check(handle, &context));
    DRIVER_TRY(driver_device_get(context->device, &device));
    DRIVER_TRY(driver_device_connect(device, connection));
    return driver_connection_check(*connection);
}

cuda_result driver_connection_current(gpushare_connection **connection)
{
    return driver_connection_of(NULL, connection);
}

void driver_connection_settle(const gpushare_connection *connection)
{
    const struct driver_device *device = driver_pool_keeps() ? driver_device_of(connection) : NULL;
    if (device)
        driver_pool_settle(device->ordinal);
}

bool driver_connection_give_back(const gpushare_connection *connection, gpushare_error error)
{
    const bool is_short = error == GPUSHARE_ERROR_OUT_OF_MEMORY ||
                          error == GPUSHARE_ERROR_NO_ROOM ||
                          error == GPUSHARE_ERROR_ADDRESS_SPACE_FULL;
    const struct driver_device *device = is_short ? driver_device_of(connection) : NULL;
    return device && driver_pool_give_back(device->ordinal);
}

void driver_connection_show(const gpushare_connection *connection, bool all)
{
    struct driver_device *device = driver_print_is_used() ? driver_device_of(connection) : NULL;
    if (device)
        driver_print_show(&device->print, connection, all);
}

cuda_result driver_connection_finish(gpushare_connection *connection)
{
    struct driver_device *device = driver_print_is_used() ? driver_device_of(connection) : NULL;
    return device ? driver_connection_result(connection,
                                             driver_print_finish(&device->print, connection))
                  : CUDA_OK;
}

/* A payload that can't be unpacked is the server's to refuse. */
static gpushare_error load(struct driver_device *device, gpushare_connection *connection,
                           struct driver_image *image, gpushare_module **module)
{
    const struct gpushare_device *of = &connection->device;
    struct fatbin_text text;
    if (fatbin_text_open(&text, image->bytes, image->count,
                         of->compute_major * 10 + of->compute_minor) > 0) {
        image->text = text.text;
        image->length = text.length;
    }
    gpushare_error error =
        driver_managed_load(&device->managed, &device->print, connection, image, module);
    if (driver_connection_give_back(connection, error))
        error = driver_managed_load(&device->managed, &device->print, connection, image, module);
    if (!error && image->text)
        driver_kernels_note(*module, image->text, image->length);
    fatbin_text_close(&text);
    return error;
}

cuda_result driver_connection_load(gpushare_connection *connection, const void *image, size_t bytes,
                                   gpushare_module **module)
{
    struct driver_device *device = driver_device_of(connection);
    struct driver_image whole = {.bytes = image, .count = bytes};
    return device ? driver_connection_result(connection, load(device, connection, &whole, module))
                  : CUDA_ERR_CONTEXT_IS_DESTROYED;
}

/* A file that can't be mapped is module_load_file's, which says why. */
cuda_result driver_connection_load_file(gpushare_connection *connection, const char *path,
                                        gpushare_module **module)
{
    struct stat status;
    void *image = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        status.st_size <= PROTO_IMAGE_MAX)
        image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (image == MAP_FAILED) {
        gpushare_error error = module_load_file(connection, path, module);
        return error == GPUSHARE_ERROR_NOT_FOUND ? CUDA_ERR_FILE_NOT_FOUND
                                                 : driver_connection_result(connection, error);
    }
    cuda_result result = driver_connection_load(connection, image, (size_t)status.st_size, module);
    munmap(image, (size_t)status.st_size);
    return result;
}

cuda_result driver_connection_unload(gpushare_module *module)
{
    gpushare_connection *connection = module->connection;
    struct driver_device *device = driver_device_of(connection);
    cuda_result result = driver_connection_finish(connection);
    cuda_result unloaded = driver_result(device ? driver_managed_unload(&device->managed, module)
                                                : module_unload(module));
    return result == CUDA_OK ? unloaded : result;
}

cuda_result driver_connection_variable(gpushare_module *module, const char *name,
                                       gpushare_address *address, uint64_t *bytes, bool *managed)
{
    struct driver_device *device = driver_device_of(module->connection);
    *managed = device && driver_managed_find(&device->managed, module, name, address, bytes);
    return *managed ? CUDA_OK : driver_result(module_find_variable(module, name, address, bytes));
}

cuda_result driver_connection_failure(gpushare_connection *connection, gpushare_error error)
{
    struct driver_device *device;
    cuda_result result = driver_result(error);
    if ((error == GPUSHARE_ERROR_INTERRUPTED || error == GPUSHARE_ERROR_STATE_LOST) &&
        (device = driver_device_of(connection)))
        atomic_store(&device->lost, (int)result);
    return result;
}
