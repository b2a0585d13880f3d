/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Libraries, whose kernels belong to no context. All contexts of a device share its objects, so
 * where a process sees one device a library is a module of it, and a kernel is a function:
 * cuLaunchKernel takes either. With more devices a kernel would have to be loaded for each, and
 * libraries are refused.
 */
#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"

/* A library stands on its device, as a context does. The library's options say when to load, and
 * who keeps the image. It is loaded at once, and copied. */
static cuda_result load(cuda_library *library, const struct front_image *image)
{
    cuda_device device;
    cuda_module module;
    if (!library || (!image->image && !image->path) ||
        (image->count && (!image->options || !image->values)))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(cuDeviceGet(&device, 0));
    if (front_device_count() > 1)
        return DRIVER_ABSENT_CASE("cuLibraryLoadData where the program sees several GPUs");
    DRIVER_TRY(driver_context_enter(device));
    cuda_result result = front_module_load(device, image, &module);
    if (result == CUDA_OK)
        *library = (cuda_library)module;
    else
        driver_context_leave(device);
    return result;
}

cuda_result cuLibraryLoadData(cuda_library *library, const void *image,
                              cuda_jit_option *jit_options, void **jit_values, unsigned jit_count,
                              int *options, void **values, unsigned count)
{
    (void)options;
    (void)values;
    (void)count;
    return load(library, &(struct front_image){.image = image,
                                               .count = jit_count,
                                               .options = jit_options,
                                               .values = jit_values});
}

cuda_result cuLibraryLoadFromFile(cuda_library *library, const char *path,
                                  cuda_jit_option *jit_options, void **jit_values,
                                  unsigned jit_count, int *options, void **values, unsigned count)
{
    (void)options;
    (void)values;
    (void)count;
    return load(library, &(struct front_image){.path = path,
                                               .count = jit_count,
                                               .options = jit_options,
                                               .values = jit_values});
}

cuda_result cuLibraryUnload(cuda_library library)
{
    cuda_device device;
    DRIVER_TRY(front_module_device((cuda_module)library, &device));
    cuda_result result = cuModuleUnload((cuda_module)library);
    /* A function that runs in a stream's order may not call, and the library stays. */
    if (result != CUDA_ERR_NOT_PERMITTED)
        driver_context_leave(device);
    return result;
}

cuda_result cuLibraryGetKernel(cuda_kernel *kernel, cuda_library library, const char *name)
{
    return cuModuleGetFunction((cuda_function *)kernel, (cuda_module)library, name);
}

/* A library needs no context, but what it is in one needs it to be current. */
static cuda_result check_current(void)
{
    cuda_device device;
    return cuCtxGetDevice(&device);
}

cuda_result cuLibraryGetModule(cuda_module *module, cuda_library library)
{
    if (!module)
        return CUDA_ERR_INVALID_VALUE;
    if (!library)
        return CUDA_ERR_INVALID_HANDLE;
    DRIVER_TRY(check_current());
    *module = (cuda_module)library;
    return CUDA_OK;
}

cuda_result cuLibraryGetGlobal(cuda_device_ptr *ptr, size_t *size, cuda_library library,
                               const char *name)
{
    DRIVER_TRY(check_current());
    return cuModuleGetGlobal_v2(ptr, size, (cuda_module)library, name);
}

cuda_result cuLibraryGetManaged(cuda_device_ptr *ptr, size_t *size, cuda_library library,
                                const char *name)
{
    cuda_device_ptr found;
    size_t bytes;
    bool managed;
    if (!name || (!ptr && !size))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_module_variable((cuda_module)library, name, &found, &bytes, &managed));
    if (!managed)
        return CUDA_ERR_NOT_FOUND;
    if (ptr)
        *ptr = found;
    if (size)
        *size = bytes;
    return CUDA_OK;
}

cuda_result cuLibraryGetKernelCount(unsigned *count, cuda_library library)
{
    return cuModuleGetFunctionCount(count, (cuda_module)library);
}

cuda_result cuLibraryEnumerateKernels(cuda_kernel *kernels, unsigned count, cuda_library library)
{
    return cuModuleEnumerateFunctions((cuda_function *)kernels, count, (cuda_module)library);
}

/* ---- kernels ---- */

cuda_result cuKernelGetFunction(cuda_function *function, cuda_kernel kernel)
{
    if (!function)
        return CUDA_ERR_INVALID_VALUE;
    if (!kernel)
        return CUDA_ERR_INVALID_HANDLE;
    DRIVER_TRY(check_current());
    *function = (cuda_function)kernel;
    return CUDA_OK;
}

cuda_result cuKernelGetAttribute(int *value, cuda_function_attribute attribute, cuda_kernel kernel,
                                 cuda_device device)
{
    cuda_device found;
    DRIVER_TRY(cuDeviceGet(&found, device));
    return cuFuncGetAttribute(value, attribute, (cuda_function)kernel);
}

cuda_result cuKernelSetAttribute(cuda_function_attribute attribute, int value, cuda_kernel kernel,
                                 cuda_device device)
{
    cuda_device found;
    DRIVER_TRY(cuDeviceGet(&found, device));
    return cuFuncSetAttribute((cuda_function)kernel, attribute, value);
}

cuda_result cuKernelGetName(const char **name, cuda_kernel kernel)
{
    return cuFuncGetName(name, (cuda_function)kernel);
}

cuda_result cuKernelGetParamInfo(cuda_kernel kernel, size_t index, size_t *offset, size_t *size)
{
    DRIVER_TRY(check_current());
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
    cuda_device found;
    DRIVER_TRY(cuDeviceGet(&found, device));
    return cuFuncSetCacheConfig((cuda_function)kernel, config);
}
