/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Functions: what they are, and what fits beside them on a multiprocessor. */
#include "common/cuda/front/front.h"
#include "common/util.h"
#include "server/softgpu/api/api.h"
#include "server/softgpu/api/module_object.h"
#include "server/softgpu/device/context_lock.h"
#include "server/softgpu/device/grid.h"

cuda_result module_object_check_function(cuda_function function)
{
    struct device *device;

    if (function && function->magic == FUNCTION_MAGIC && function->module->standing)
        return front_check();
    DRIVER_TRY(api_current(&device));
    return function && function->magic == FUNCTION_MAGIC ? CUDA_OK : CUDA_ERR_INVALID_HANDLE;
}

cuda_result cuFuncGetName(const char **name, cuda_function function)
{
    if (!name || !function)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(module_object_check_function(function));
    *name = function->info.name;
    return CUDA_OK;
}

/* The dynamic shared memory that a launch may ask for: the rest of the default amount, unless
 * more was allowed. */
uint32_t module_object_dynamic_limit(const struct cuda_function_object *function)
{
    uint32_t allowed = (uint32_t)atomic_load(&function->max_dynamic_shared);
    uint32_t fixed = function->info.static_shared_bytes;

    return max(allowed, (uint32_t)saturating_sub(DEVICE_BLOCK_SHARED, fixed));
}

cuda_result cuFuncGetAttribute(int *value, cuda_function_attribute attribute,
                               cuda_function function)
{
    const struct function_info *info;

    DRIVER_TRY(module_object_check_function(function));
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    info = &function->info;
    switch (attribute) {
    case CUDA_FUNC_MAX_THREADS_PER_BLOCK:
        *value = (int)info->max_threads;
        return CUDA_OK;
    case CUDA_FUNC_SHARED_SIZE_BYTES:
        *value = (int)info->static_shared_bytes;
        return CUDA_OK;
    case CUDA_FUNC_CONST_SIZE_BYTES:
        *value = (int)info->const_bytes;
        return CUDA_OK;
    case CUDA_FUNC_LOCAL_SIZE_BYTES:
        *value = (int)info->local_bytes;
        return CUDA_OK;
    case CUDA_FUNC_NUM_REGS:
        *value = (int)info->registers;
        return CUDA_OK;
    case CUDA_FUNC_PTX_VERSION:
        *value = (int)info->target;
        return CUDA_OK;
    case CUDA_FUNC_BINARY_VERSION:
        *value = (int)(device_profile()->cc_major * 10 + device_profile()->cc_minor);
        return CUDA_OK;
    case CUDA_FUNC_CACHE_MODE_CA:
        *value = 0;
        return CUDA_OK;
    case CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)module_object_dynamic_limit(function);
        return CUDA_OK;
    case CUDA_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = atomic_load(&function->carveout);
        return CUDA_OK;
    default:
        return front_cluster_attribute(attribute, value);
    }
}

static cuda_result set_attribute(struct cuda_function_object *function,
                                 cuda_function_attribute attribute, int value)
{
    if (attribute == CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || (unsigned)value + function->info.static_shared_bytes >
                             device_profile()->block_shared_optin_bytes)
            return CUDA_ERR_INVALID_VALUE;
        atomic_store(&function->max_dynamic_shared, value);
        return CUDA_OK;
    }
    if (attribute == CUDA_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT) {
        if (value < -1 || value > 100)
            return CUDA_ERR_INVALID_VALUE;
        atomic_store(&function->carveout, value);
        return CUDA_OK;
    }
    return CUDA_ERR_INVALID_VALUE;
}

cuda_result cuFuncSetAttribute(cuda_function function, cuda_function_attribute attribute, int value)
{
    struct device *device;
    cuda_result result;

    DRIVER_TRY(module_object_check_function(function));
    device = function->module->device;
    context_lock_call(device, CONTEXT_CALL_SET_FUNCTION);
    result = set_attribute(function, attribute, value);
    context_lock_release(device);
    return result;
}

cuda_result cuFuncGetParamInfo(cuda_function function, size_t index, size_t *offset, size_t *size)
{
    uint32_t at, bytes;

    DRIVER_TRY(module_object_check_function(function));
    if (!offset || index >= function->info.param_count ||
        description_param(function->module->description, function->index, (uint32_t)index, &at,
                          &bytes) != 0)
        return CUDA_ERR_INVALID_VALUE;
    *offset = at;
    if (size)
        *size = bytes;
    return CUDA_OK;
}

cuda_result cuFuncGetParamCount(cuda_function function, size_t *count)
{
    DRIVER_TRY(module_object_check_function(function));
    if (!count)
        return CUDA_ERR_INVALID_VALUE;
    *count = function->info.param_count;
    return CUDA_OK;
}

cuda_result cuFuncGetModule(cuda_module *module, cuda_function function)
{
    DRIVER_TRY(module_object_check_function(function));
    if (!module)
        return CUDA_ERR_INVALID_VALUE;
    *module = function->module;
    return CUDA_OK;
}

cuda_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cuda_function function,
                                                        int block_size, size_t dynamic_shared_bytes)
{
    DRIVER_TRY(module_object_check_function(function));
    if (!blocks || block_size <= 0)
        return CUDA_ERR_INVALID_VALUE;
    if ((unsigned)block_size > function->info.max_threads ||
        dynamic_shared_bytes > module_object_dynamic_limit(function))
        *blocks = 0;
    else
        *blocks = (int)grid_blocks_per_sm((unsigned)block_size, function->info.static_shared_bytes +
                                                                    (uint32_t)dynamic_shared_bytes);
    return CUDA_OK;
}
