/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/registry.h"
#include "client/cuda/runtime/base/runtime_context.h"
#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/runtime_exports.h"

static cudart_error load(struct registry_function *kernel, cuda_function *function)
{
    cuda_context context;
    cudart_error error = kernel ? CUDART_OK : CUDART_INVALID_DEVICE_FUNCTION;

    if (error == CUDART_OK)
        error = runtime_context_enter(&context);
    return error == CUDART_OK ? registry_function_load(kernel, context, function) : error;
}

/* The same for a kernel's address in the program. */
static cudart_error load_host(const void *host, cuda_function *function)
{
    cuda_context context;

    if (runtime_context_current(&context) && registry_function_known(host, context, function))
        return CUDART_OK;
    return load(registry_function_find(host), function);
}

/* ---- launches --------------------------------------------------------------------------- */

static bool within(const cudart_dim3 *size, cuda_device_attribute x, cuda_device device)
{
    const unsigned sizes[] = {size->x, size->y, size->z};

    for (unsigned i = 0; i < 3; i++) {
        int most = 0;

        /* The three attributes follow each other. */
        if (DRIVER(cuDeviceGetAttribute, &most, (cuda_device_attribute)(x + i), device) !=
                CUDART_OK ||
            sizes[i] == 0 || sizes[i] > (unsigned)most)
            return false;
    }
    return true;
}

/* The driver calls any wrong argument of a launch an invalid value; the runtime has an error of its
 * own for a grid or block that the device does not have. */
__attribute__((cold)) static cudart_error explain_refusal(cudart_dim3 grid, cudart_dim3 block)
{
    int most = 0;
    cuda_device device;

    if (DRIVER(cuCtxGetDevice, &device) != CUDART_OK ||
        DRIVER(cuDeviceGetAttribute, &most, CUDA_ATTR_MAX_THREADS_PER_BLOCK, device) != CUDART_OK)
        return CUDART_INVALID_VALUE;
    if (within(&grid, CUDA_ATTR_MAX_GRID_DIM_X, device) &&
        within(&block, CUDA_ATTR_MAX_BLOCK_DIM_X, device) &&
        (uint64_t)block.x * block.y * block.z <= (unsigned)most)
        return CUDART_INVALID_VALUE;
    return CUDART_INVALID_CONFIGURATION;
}

/* Inline, since the sizes would have to be moved between two calls. */
__attribute__((always_inline)) static inline cudart_error
launch_function(bool cooperative, cuda_function function, cudart_dim3 grid, cudart_dim3 block,
                void **params, size_t shared_bytes, cuda_stream stream)
{
    cudart_error error;

    if (shared_bytes > UINT32_MAX)
        return runtime_error_note(CUDART_INVALID_VALUE);
    if (cooperative)
        error = DRIVER(cuLaunchCooperativeKernel, function, grid.x, grid.y, grid.z, block.x,
                       block.y, block.z, (unsigned)shared_bytes, stream, params);
    else
        error = DRIVER(cuLaunchKernel, function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                       (unsigned)shared_bytes, stream, params, NULL);
    if (error == CUDART_INVALID_VALUE)
        error = explain_refusal(grid, block);
    return runtime_error_note(error);
}

cudart_error cudaLaunchKernel(const void *host, cudart_dim3 grid, cudart_dim3 block, void **params,
                              size_t shared_bytes, cuda_stream stream)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    return error == CUDART_OK
               ? launch_function(false, function, grid, block, params, shared_bytes, stream)
               : runtime_error_note(error);
}

/* How many blocks fit at once is the driver's to know: it knows the client's share. */
cudart_error cudaLaunchCooperativeKernel(const void *host, cudart_dim3 grid, cudart_dim3 block,
                                         void **params, size_t shared_bytes, cuda_stream stream)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    return error == CUDART_OK
               ? launch_function(true, function, grid, block, params, shared_bytes, stream)
               : runtime_error_note(error);
}

/* The driver's own reading of attributes, which knows what its device has. */
static cudart_error launch_extended(const struct cuda_launch_config *config, const void *host,
                                    void **params)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    if (error == CUDART_OK && config->dynamic_shared_bytes > UINT32_MAX)
        error = CUDART_INVALID_VALUE;
    if (error == CUDART_OK)
        error = DRIVER(cuLaunchKernelEx, config, function, params, NULL);
    if (error == CUDART_INVALID_VALUE)
        error = explain_refusal(config->grid, config->block);
    return runtime_error_note(error);
}

/* For a driver whose launches take no attributes. */
static cudart_error read_attributes(const struct cuda_launch_config *config, bool *cooperative)
{
    enum { ACCESS_POLICY_MAX_WINDOW = 109 }; /* the device's attribute */
    int window_max = 0;
    cuda_device device;
    cudart_error error = runtime_context_enter(NULL);

    if (error == CUDART_OK)
        error = DRIVER(cuCtxGetDevice, &device);
    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetAttribute, &window_max,
                       (cuda_device_attribute)ACCESS_POLICY_MAX_WINDOW, device);
    return error == CUDART_OK ? (cudart_error)launch_attribute_read(config, window_max, cooperative)
                              : error;
}

cudart_error cudaLaunchKernelExC(const struct cuda_launch_config *config, const void *host,
                                 void **params)
{
    bool cooperative;
    cuda_function function;
    cudart_error error;

    ENTER();
    if (!config)
        return runtime_error_note(CUDART_INVALID_VALUE);
    if (config->attribute_count > 0 && runtime_driver.cuLaunchKernelEx)
        return launch_extended(config, host, params);
    error = read_attributes(config, &cooperative);
    if (error == CUDART_OK)
        error = load_host(host, &function);
    return error == CUDART_OK
               ? launch_function(cooperative, function, config->grid, config->block, params,
                                 config->dynamic_shared_bytes, config->stream)
               : runtime_error_note(error);
}

/* nvcc's host code of a kernel asks once, and keeps the handle. */
cudart_error __cudaGetKernel(cudart_kernel *kernel, const void *host)
{
    if (!kernel)
        return runtime_error_note(CUDART_INVALID_VALUE);
    *kernel = registry_function_find(host);
    return *kernel ? CUDART_OK : runtime_error_note(CUDART_INVALID_DEVICE_FUNCTION);
}

cudart_error __cudaLaunchKernel(cudart_kernel kernel, cudart_dim3 grid, cudart_dim3 block,
                                void **params, size_t shared_bytes, cuda_stream stream)
{
    cuda_function function;
    cudart_error error = load(kernel, &function);

    return error == CUDART_OK
               ? launch_function(false, function, grid, block, params, shared_bytes, stream)
               : runtime_error_note(error);
}

/* ---- what is known of kernels --------------------------------------------------------------- */

cudart_error cudaFuncGetAttributes(struct cudart_function_attributes *attributes, const void *host)
{
    int values[CUDA_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT + 1];
    cuda_function function;
    cudart_error error = attributes ? load_host(host, &function) : CUDART_INVALID_VALUE;

    for (int i = 0; i <= CUDA_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT && error == CUDART_OK; i++)
        error = DRIVER(cuFuncGetAttribute, &values[i], (cuda_function_attribute)i, function);
    if (error != CUDART_OK)
        return runtime_error_note(error);
    *attributes = (struct cudart_function_attributes){
        .shared_bytes = (size_t)values[CUDA_FUNC_SHARED_SIZE_BYTES],
        .const_bytes = (size_t)values[CUDA_FUNC_CONST_SIZE_BYTES],
        .local_bytes = (size_t)values[CUDA_FUNC_LOCAL_SIZE_BYTES],
        .max_threads_per_block = values[CUDA_FUNC_MAX_THREADS_PER_BLOCK],
        .registers = values[CUDA_FUNC_NUM_REGS],
        .ptx_version = values[CUDA_FUNC_PTX_VERSION],
        .binary_version = values[CUDA_FUNC_BINARY_VERSION],
        .cache_mode_ca = values[CUDA_FUNC_CACHE_MODE_CA],
        .max_dynamic_shared_bytes = values[CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES],
        .preferred_shared_carveout = values[CUDA_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT],
    };
    return CUDART_OK;
}

/* The numbers of attributes are the driver's. */
cudart_error cudaFuncSetAttribute(const void *host, int attribute, int value)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    if (error == CUDART_OK)
        error = DRIVER(cuFuncSetAttribute, function, (cuda_function_attribute)attribute, value);
    return runtime_error_note(error);
}

cudart_error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host,
                                                           int block_size, size_t shared_bytes)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    if (error == CUDART_OK)
        error = DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, function, block_size,
                       shared_bytes);
    return runtime_error_note(error);
}

/* The one flag says that caching in L1 does not change the answer, which it does not here. */
cudart_error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host,
                                                                    int block_size,
                                                                    size_t shared_bytes,
                                                                    unsigned flags)
{
    if (flags & ~1U)
        return runtime_error_note(CUDART_INVALID_VALUE);
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, block_size, shared_bytes);
}

/* ---- preferences, and what a kernel is ---- */

/* The preferences' numbers are the driver's. */
cudart_error cudaFuncSetCacheConfig(const void *host, int config)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    return runtime_error_note(error == CUDART_OK ? DRIVER(cuFuncSetCacheConfig, function, config)
                                                 : error);
}

cudart_error cudaFuncSetSharedMemConfig(const void *host, int config)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    return runtime_error_note(
        error == CUDART_OK ? DRIVER(cuFuncSetSharedMemConfig, function, config) : error);
}

cudart_error cudaFuncGetName(const char **name, const void *host)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    return runtime_error_note(error == CUDART_OK ? DRIVER(cuFuncGetName, name, function) : error);
}

cudart_error cudaFuncGetParamInfo(const void *host, size_t index, size_t *offset, size_t *size)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    return runtime_error_note(
        error == CUDART_OK ? DRIVER(cuFuncGetParamInfo, function, index, offset, size) : error);
}

cudart_error cudaFuncGetParamCount(const void *host, size_t *count)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    return runtime_error_note(error == CUDART_OK ? DRIVER(cuFuncGetParamCount, function, count)
                                                 : error);
}

cudart_error cudaGetFuncBySymbol(cuda_function *function, const void *host)
{
    if (!function)
        return runtime_error_note(CUDART_INVALID_VALUE);
    return runtime_error_note(load_host(host, function));
}

cudart_error cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *host,
                                                       int num_blocks, int block_size)
{
    cuda_function function;
    cudart_error error = load_host(host, &function);

    return runtime_error_note(error == CUDART_OK ? DRIVER(cuOccupancyAvailableDynamicSMemPerBlock,
                                                          bytes, function, num_blocks, block_size)
                                                 : error);
}

/* ---- handles of kernels, and libraries that the program loads ---- */

/* The driver takes a kernel where it takes a function, and so does the runtime where it takes the
 * address of the kernel's host function. */
cudart_error cudaGetKernel(cuda_kernel *kernel, const void *host)
{
    struct registry_function *found = registry_function_find(host);
    cuda_function function;
    cudart_error error = kernel ? load(found, &function) : CUDART_INVALID_VALUE;

    if (error == CUDART_OK)
        error = registry_function_handle(found, function);
    if (error == CUDART_OK)
        *kernel = (cuda_kernel)function;
    return runtime_error_note(error);
}

/* The numbers of options are the driver's. A library needs a context, as everything here does. */
cudart_error cudaLibraryLoadData(cuda_library *library, const void *image,
                                 cuda_jit_option *jit_options, void **jit_values,
                                 unsigned jit_count, int *options, void **values, unsigned count)
{
    ENTER();
    return runtime_error_note(DRIVER(cuLibraryLoadData, library, image, jit_options, jit_values,
                                     jit_count, options, values, count));
}

cudart_error cudaLibraryLoadFromFile(cuda_library *library, const char *path,
                                     cuda_jit_option *jit_options, void **jit_values,
                                     unsigned jit_count, int *options, void **values,
                                     unsigned count)
{
    ENTER();
    return runtime_error_note(DRIVER(cuLibraryLoadFromFile, library, path, jit_options, jit_values,
                                     jit_count, options, values, count));
}

cudart_error cudaLibraryUnload(cuda_library library)
{
    ENTER();
    registry_library_forget(library);
    return runtime_error_note(DRIVER(cuLibraryUnload, library));
}

cudart_error cudaLibraryGetKernel(cuda_kernel *kernel, cuda_library library, const char *name)
{
    cuda_kernel found;
    cudart_error error;

    ENTER();
    if (!kernel)
        return runtime_error_note(CUDART_INVALID_VALUE);
    error = DRIVER(cuLibraryGetKernel, &found, library, name);
    if (error == CUDART_OK)
        error = registry_library_handle(library, (cuda_function)found);
    if (error == CUDART_OK)
        *kernel = found;
    return runtime_error_note(error);
}

cudart_error cudaLibraryGetGlobal(void **ptr, size_t *size, cuda_library library, const char *name)
{
    cuda_device_ptr found = 0;
    cudart_error error;

    ENTER();
    error = DRIVER(cuLibraryGetGlobal, &found, size, library, name);
    if (error == CUDART_OK && ptr)
        *ptr = (void *)(uintptr_t)found;
    return runtime_error_note(error);
}

cudart_error cudaLibraryGetManaged(void **ptr, size_t *size, cuda_library library, const char *name)
{
    cuda_device_ptr found = 0;
    cudart_error error;

    ENTER();
    error = DRIVER(cuLibraryGetManaged, &found, size, library, name);
    if (error == CUDART_OK && ptr)
        *ptr = (void *)(uintptr_t)found;
    return runtime_error_note(error);
}

cudart_error cudaLibraryGetKernelCount(unsigned *count, cuda_library library)
{
    ENTER();
    return runtime_error_note(DRIVER(cuLibraryGetKernelCount, count, library));
}

/* A room of more kernels than the library has keeps what is behind them. */
cudart_error cudaLibraryEnumerateKernels(cuda_kernel *kernels, unsigned count, cuda_library library)
{
    unsigned all = 0;
    cudart_error error;

    ENTER();
    error = DRIVER(cuLibraryGetKernelCount, &all, library);
    if (error == CUDART_OK)
        error = DRIVER(cuLibraryEnumerateKernels, kernels, count, library);
    for (unsigned i = 0; error == CUDART_OK && i < all && i < count; i++)
        error = registry_library_handle(library, (cuda_function)kernels[i]);
    return runtime_error_note(error);
}

cudart_error cudaKernelSetAttributeForDevice(cuda_kernel kernel, cuda_function_attribute attribute,
                                             int value, int ordinal)
{
    ENTER();
    return runtime_error_note(DRIVER(cuKernelSetAttribute, attribute, value, kernel, ordinal));
}
