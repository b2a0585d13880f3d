/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Libraries, whose kernels belong to no context. A device has one connection, so where a process
 * sees one device a library is a module of it, and a kernel is a function: cuLaunchKernel takes
 * either. With more devices a kernel would have to be loaded for each, and libraries are refused.
 */
#include <stdbool.h>

#include "client/cuda/driver/base/driver_context.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/cuda/driver/base/driver_image.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/module.h"

/* A library keeps the connection, as a context does. */
static cuda_result begin(struct driver_device **device, gpushare_connection **connection)
{
    DRIVER_TRY(driver_device_get(0, device));
    if (driver_device_count() > 1)
        return CUDA_ERR_NOT_SUPPORTED;
    DRIVER_TRY(driver_device_enter(*device));
    cuda_result result = driver_device_connect(*device, connection);
    if (result == CUDA_OK)
        result = driver_connection_check(*connection);
    if (result != CUDA_OK)
        driver_device_leave(*device);
    return result;
}

static cuda_result end(struct driver_device *device, gpushare_error error, gpushare_module *loaded,
                       cuda_library *library)
{
    if (error) {
        cuda_result result = driver_result(error);
        driver_device_leave(device);
        return result;
    }
    *library = (cuda_library)loaded;
    return CUDA_OK;
}

/* The library's options say when to load, and who keeps the image. It is loaded at once, and sent.
 */
cuda_result cuLibraryLoadData(cuda_library *library, const void *image,
                              cuda_jit_option *jit_options, void **jit_values, unsigned jit_count,
                              int *options, void **values, unsigned count)
{
    struct driver_device *device;
    gpushare_connection *connection;
    gpushare_module *loaded = NULL;
    (void)options;
    (void)values;
    (void)count;
    if (!library || !image || (jit_count && (!jit_options || !jit_values)))
        return CUDA_ERR_INVALID_VALUE;
    size_t bytes = driver_image_measure(&image);
    if (!bytes)
        return CUDA_ERR_INVALID_IMAGE;
    DRIVER_TRY(begin(&device, &connection));
    gpushare_error error = module_load_image(connection, image, bytes, &loaded);
    driver_image_log(jit_count, jit_options, jit_values, error ? CUDA_ERR_INVALID_IMAGE : CUDA_OK);
    return end(device, error, loaded, library);
}

cuda_result cuLibraryLoadFromFile(cuda_library *library, const char *path,
                                  cuda_jit_option *jit_options, void **jit_values,
                                  unsigned jit_count, int *options, void **values, unsigned count)
{
    struct driver_device *device;
    gpushare_connection *connection;
    gpushare_module *loaded = NULL;
    (void)options;
    (void)values;
    (void)count;
    if (!library || !path || (jit_count && (!jit_options || !jit_values)))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(begin(&device, &connection));
    gpushare_error error = module_load_file(connection, path, &loaded);
    driver_image_log(jit_count, jit_options, jit_values, error ? CUDA_ERR_INVALID_IMAGE : CUDA_OK);
    cuda_result result = end(device, error, loaded, library);
    return error == GPUSHARE_ERROR_NOT_FOUND ? CUDA_ERR_FILE_NOT_FOUND : result;
}

cuda_result cuLibraryUnload(cuda_library library)
{
    struct gpushare_module *module = (struct gpushare_module *)library;
    if (!library)
        return CUDA_ERR_INVALID_HANDLE;
    struct driver_device *device = driver_device_of(module->connection);
    cuda_result result = cuModuleUnload((cuda_module)library);
    if (device)
        driver_device_leave(device);
    return result;
}

cuda_result cuLibraryGetKernel(cuda_kernel *kernel, cuda_library library, const char *name)
{
    return cuModuleGetFunction((cuda_function *)kernel, (cuda_module)library, name);
}

cuda_result cuLibraryGetModule(cuda_module *module, cuda_library library)
{
    if (!module)
        return CUDA_ERR_INVALID_VALUE;
    if (!library)
        return CUDA_ERR_INVALID_HANDLE;
    *module = (cuda_module)library;
    return CUDA_OK;
}

cuda_result cuLibraryGetGlobal(cuda_device_ptr *ptr, size_t *size, cuda_library library,
                               const char *name)
{
    return cuModuleGetGlobal_v2(ptr, size, (cuda_module)library, name);
}

/* ---- kernels ---- */

cuda_result cuKernelGetFunction(cuda_function *function, cuda_kernel kernel)
{
    if (!function)
        return CUDA_ERR_INVALID_VALUE;
    if (!kernel)
        return CUDA_ERR_INVALID_HANDLE;
    *function = (cuda_function)kernel;
    return CUDA_OK;
}

cuda_result cuKernelGetAttribute(int *value, cuda_function_attribute attribute, cuda_kernel kernel,
                                 cuda_device device)
{
    struct driver_device *found;
    DRIVER_TRY(driver_device_get(device, &found));
    return cuFuncGetAttribute(value, attribute, (cuda_function)kernel);
}

cuda_result cuKernelSetAttribute(cuda_function_attribute attribute, int value, cuda_kernel kernel,
                                 cuda_device device)
{
    struct driver_device *found;
    DRIVER_TRY(driver_device_get(device, &found));
    return cuFuncSetAttribute((cuda_function)kernel, attribute, value);
}

cuda_result cuKernelGetName(const char **name, cuda_kernel kernel)
{
    return cuFuncGetName(name, (cuda_function)kernel);
}

cuda_result cuKernelGetParamInfo(cuda_kernel kernel, size_t index, size_t *offset, size_t *size)
{
    return cuFuncGetParamInfo((cuda_function)kernel, index, offset, size);
}

cuda_result cuKernelGetLibrary(cuda_library *library, cuda_kernel kernel)
{
    return cuFuncGetModule((cuda_module *)library, (cuda_function)kernel);
}

cuda_result cuKernelGetParamCount(cuda_kernel kernel, size_t *count)
{
    return cuFuncGetParamCount((cuda_function)kernel, count);
}

cuda_result cuKernelSetCacheConfig(cuda_kernel kernel, int config, cuda_device device)
{
    struct driver_device *found;
    DRIVER_TRY(driver_device_get(device, &found));
    return cuFuncSetCacheConfig((cuda_function)kernel, config);
}
