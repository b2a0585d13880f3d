/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Kernels and modules: hints, which the driver may leave, and what is so for all of them. */
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"

cuda_result cuFuncSetCacheConfig(cuda_function function, int config)
{
    enum { PREFER_EQUAL = 3 };
    cuda_device device;
    DRIVER_TRY(front_function_device(function, &device));
    return config < 0 || config > PREFER_EQUAL ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

cuda_result cuFuncSetSharedMemConfig(cuda_function function, int config)
{
    enum { EIGHT_BYTE_BANKS = 2 };
    cuda_device device;
    DRIVER_TRY(front_function_device(function, &device));
    return config < 0 || config > EIGHT_BYTE_BANKS ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

/* A module is loaded whole, at once. */
cuda_result cuFuncIsLoaded(int *state, cuda_function function)
{
    enum { LOADED = 1 };
    cuda_device device;
    DRIVER_TRY(front_function_device(function, &device));
    if (!state)
        return CUDA_ERR_INVALID_VALUE;
    *state = LOADED;
    return CUDA_OK;
}

cuda_result cuFuncLoad(cuda_function function)
{
    cuda_device device;
    return front_function_device(function, &device);
}

cuda_result cuModuleGetLoadingMode(int *mode)
{
    enum { EAGER = 1 };
    if (!mode)
        return CUDA_ERR_INVALID_VALUE;
    *mode = EAGER;
    return CUDA_OK;
}

cuda_result cuModuleLoadFatBinary(cuda_module *module, const void *image)
{
    return cuModuleLoadData(module, image);
}
