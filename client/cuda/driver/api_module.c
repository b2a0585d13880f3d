/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Modules and kernels. Their handles are the engine's objects. */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/driver/base/driver_connection.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"
#include "client/cuda/driver/base/driver_image.h"
#include "client/cuda/driver/base/driver_kernels.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/base/driver_stream.h"
#include "client/engine/connection.h"
#include "client/engine/launch.h"
#include "client/engine/module.h"
#include "client/session/failure.h"
#include "common/cuda/jit_log.h"
#include "common/cuda/launch_extra.h"

/* ---- images ---- */

cuda_result cuModuleLoadData(cuda_module *module, const void *image)
{
    gpushare_connection *connection;
    gpushare_module *loaded;
    if (!module || !image)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_current(&connection));
    size_t bytes = driver_image_measure(&image);
    if (!bytes)
        return CUDA_ERR_INVALID_IMAGE;
    DRIVER_TRY(driver_connection_load(connection, image, bytes, &loaded));
    *module = (cuda_module)loaded;
    return CUDA_OK;
}

/* Other options advise the compiler. The server's compiler takes no advice of one client. */
cuda_result cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned count,
                               cuda_jit_option *options, void **values)
{
    if (count && (!options || !values))
        return CUDA_ERR_INVALID_VALUE;
    cuda_result result = cuModuleLoadData(module, image);
    jit_log_write(count, options, values, result == CUDA_OK ? "" : failure_sentence());
    return result;
}

cuda_result cuModuleLoad(cuda_module *module, const char *path)
{
    gpushare_connection *connection;
    gpushare_module *loaded;
    if (!module || !path)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_current(&connection));
    DRIVER_TRY(driver_connection_load_file(connection, path, &loaded));
    *module = (cuda_module)loaded;
    return CUDA_OK;
}

static cuda_result check_module(cuda_module handle, struct gpushare_module **module)
{
    *module = (struct gpushare_module *)handle;
    return handle ? driver_connection_check((*module)->connection) : CUDA_ERR_INVALID_HANDLE;
}

cuda_result cuModuleUnload(cuda_module handle)
{
    struct gpushare_module *module;
    DRIVER_TRY(check_module(handle, &module));
    return driver_connection_unload(module);
}

static bool is_name(const char *name)
{
    return name && *name && strlen(name) <= PROTO_NAME_MAX;
}

cuda_result cuModuleGetFunction(cuda_function *function, cuda_module handle, const char *name)
{
    struct gpushare_module *module;
    gpushare_function *found;
    DRIVER_TRY(check_module(handle, &module));
    if (!function || !is_name(name))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_result(module_find_function(module, name, &found)));
    *function = (cuda_function)found;
    return CUDA_OK;
}

cuda_result cuModuleGetGlobal_v2(cuda_device_ptr *ptr, size_t *size, cuda_module handle,
                                 const char *name)
{
    cuda_device_ptr address;
    size_t bytes;
    bool managed;
    DRIVER_TRY(front_module_variable(handle, name, &address, &bytes, &managed));
    if (ptr)
        *ptr = address;
    if (size)
        *size = bytes;
    return CUDA_OK;
}

cuda_result cuModuleGetFunctionCount(unsigned *count, cuda_module handle)
{
    struct gpushare_module *module;
    gpushare_function **functions;
    DRIVER_TRY(check_module(handle, &module));
    if (!count)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_kernels_list(module, &functions, count));
    free(functions);
    return CUDA_OK;
}

cuda_result cuModuleEnumerateFunctions(cuda_function *functions, unsigned room, cuda_module handle)
{
    struct gpushare_module *module;
    gpushare_function **found;
    unsigned count;
    DRIVER_TRY(check_module(handle, &module));
    if (!functions)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_kernels_list(module, &found, &count));
    for (unsigned i = 0; i < count && i < room; i++)
        functions[i] = (cuda_function)found[i];
    free(found);
    return CUDA_OK;
}

/* ---- kernels ---- */

static cuda_result check_function(cuda_function handle, struct gpushare_function **function)
{
    *function = (struct gpushare_function *)handle;
    return handle ? driver_connection_check((*function)->connection) : CUDA_ERR_INVALID_HANDLE;
}

cuda_result cuFuncGetAttribute(int *value, cuda_function_attribute attribute, cuda_function handle)
{
    struct gpushare_function *function;
    struct gpushare_function_info info;
    DRIVER_TRY(check_function(handle, &function));
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    module_function_info(function, &info);
    switch (attribute) {
#define ROW(name, member)                                                                          \
    case CUDA_FUNC_##name:                                                                         \
        *value = (int)info.member;                                                                 \
        return CUDA_OK;
        ROW(MAX_THREADS_PER_BLOCK, block_threads)
        ROW(SHARED_SIZE_BYTES, static_shared)
        ROW(CONST_SIZE_BYTES, constant_memory)
        ROW(LOCAL_SIZE_BYTES, local_memory)
        ROW(NUM_REGS, registers)
        ROW(PTX_VERSION, ptx_version)
        ROW(BINARY_VERSION, binary_version)
        ROW(MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic_shared)
#undef ROW
    case CUDA_FUNC_CACHE_MODE_CA:
        *value = 0;
        return CUDA_OK;
    case CUDA_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1; /* the driver's choice */
        return CUDA_OK;
    default:
        return front_cluster_attribute(attribute, value);
    }
}

cuda_result cuFuncSetAttribute(cuda_function handle, cuda_function_attribute attribute, int value)
{
    struct gpushare_function *function;
    DRIVER_TRY(check_function(handle, &function));
    switch (attribute) {
    case CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return value < 0 ? CUDA_ERR_INVALID_VALUE
                         : driver_result(module_set_shared(function, (uint32_t)value));
    case CUDA_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT:
        /* CUDA calls it a hint, which the driver may leave. */
        return value < -1 || value > 100 ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
}

cuda_result cuFuncGetName(const char **name, cuda_function handle)
{
    struct gpushare_function *function;
    if (!name || !handle)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(check_function(handle, &function));
    *name = function->name;
    return CUDA_OK;
}

cuda_result cuFuncGetModule(cuda_module *module, cuda_function handle)
{
    struct gpushare_function *function;
    DRIVER_TRY(check_function(handle, &function));
    if (!module)
        return CUDA_ERR_INVALID_VALUE;
    *module = (cuda_module)function->module;
    return CUDA_OK;
}

cuda_result cuFuncGetParamInfo(cuda_function handle, size_t index, size_t *offset, size_t *size)
{
    struct gpushare_function *function;
    DRIVER_TRY(check_function(handle, &function));
    if (!offset || index >= function->parameters)
        return CUDA_ERR_INVALID_VALUE;
    *offset = function->table[index].offset;
    if (size)
        *size = function->table[index].bytes;
    return CUDA_OK;
}

cuda_result cuFuncGetParamCount(cuda_function handle, size_t *count)
{
    struct gpushare_function *function;
    DRIVER_TRY(check_function(handle, &function));
    if (!count)
        return CUDA_ERR_INVALID_VALUE;
    *count = function->parameters;
    return CUDA_OK;
}

/* The server answers. */
cuda_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cuda_function handle,
                                                        int block_size, size_t dynamic_shared_bytes)
{
    struct gpushare_function *function;
    uint32_t found;
    DRIVER_TRY(check_function(handle, &function));
    if (!blocks || block_size <= 0 || dynamic_shared_bytes > UINT32_MAX)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_result(module_query_occupancy(function, (uint32_t)block_size,
                                                    (uint32_t)dynamic_shared_bytes, &found)));
    *blocks = (int)found;
    return CUDA_OK;
}

static cuda_result find_source(const struct gpushare_function *function, void **params,
                               void **extra, struct launch_source *source)
{
    *source = (struct launch_source){.each = params};
    if (!extra)
        return CUDA_OK;
    if (params)
        return CUDA_ERR_INVALID_VALUE;
    return launch_extra_read(extra, function->parameter_bytes, &source->packed);
}

cuda_result cuLaunchKernel(cuda_function handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, cuda_stream stream, void **params, void **extra)
{
    const struct launch_shape shape = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
    gpushare_stream *to = driver_stream_handle(stream);
    struct gpushare_function *function;
    struct launch_source source;
    DRIVER_TRY(check_function(handle, &function));
    if (!extra)
        return driver_connection_result(function->connection,
                                        launch_shaped(function, &shape, to, params));
    DRIVER_TRY(find_source(function, params, extra, &source));
    return driver_connection_result(
        function->connection,
        launch_packed(function, shape.grid, shape.block, shared_bytes, to, source.packed));
}

static cuda_result launch_at_once(const struct cuda_launch_config *config, cuda_function handle,
                                  cuda_stream stream, void **params, void **extra)
{
    const struct gpushare_dim grid = {config->grid.x, config->grid.y, config->grid.z};
    const struct gpushare_dim block = {config->block.x, config->block.y, config->block.z};
    struct gpushare_function *function;
    struct launch_source source;
    DRIVER_TRY(check_function(handle, &function));
    DRIVER_TRY(find_source(function, params, extra, &source));
    return driver_connection_result(function->connection,
                                    launch_cooperative(function, grid, block,
                                                       (uint32_t)config->dynamic_shared_bytes,
                                                       driver_stream_handle(stream), source));
}

cuda_result cuLaunchCooperativeKernel(cuda_function function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared_bytes, cuda_stream stream,
                                      void **params)
{
    const struct cuda_launch_config config = {.grid = {grid_x, grid_y, grid_z},
                                              .block = {block_x, block_y, block_z},
                                              .dynamic_shared_bytes = shared_bytes};
    return launch_at_once(&config, function, stream, params, NULL);
}

cuda_result cuLaunchKernelEx(const struct cuda_launch_config *config, cuda_function function,
                             void **params, void **extra)
{
    bool cooperative;
    if (!config)
        return CUDA_ERR_INVALID_VALUE;
    /* An access window is a hint to a cache that all clients share, so none is allowed. */
    DRIVER_TRY(launch_attribute_read(config, 0, &cooperative));
    if (cooperative)
        return launch_at_once(config, function, config->stream, params, extra);
    /* The driver's struct has 32 bits of shared memory, and padding behind them. */
    return cuLaunchKernel(function, config->grid.x, config->grid.y, config->grid.z, config->block.x,
                          config->block.y, config->block.z, (uint32_t)config->dynamic_shared_bytes,
                          config->stream, params, extra);
}
