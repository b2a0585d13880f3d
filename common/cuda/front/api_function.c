/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Kernels and modules: hints, which the driver may leave, what is so for all of them, and the
 * launch calls of CUDA 2, which set a launch up in the kernel. */
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- the launch calls of CUDA 2 ---- */

enum { PARAMETERS_MAX = 4096 }; /* as much as these calls ever took */

struct setup {
    unsigned block[3], shared_bytes, parameter_bytes;
    alignas(16) unsigned char parameters[PARAMETERS_MAX];
};

/* Guards all setups. */
static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;

/* On success the lock is held. */
static cuda_result setup_take(cuda_function function, struct setup **setup)
{
    void **note;
    DRIVER_TRY(front_function_note(function, &note));
    pthread_mutex_lock(&setup_lock);
    if (!*note)
        *note = calloc(1, sizeof **setup);
    *setup = *note;
    if (*note)
        return CUDA_OK;
    pthread_mutex_unlock(&setup_lock);
    return CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result cuFuncSetBlockShape(cuda_function function, int x, int y, int z)
{
    struct setup *setup;
    if (x < 1 || y < 1 || z < 1)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(setup_take(function, &setup));
    setup->block[0] = (unsigned)x;
    setup->block[1] = (unsigned)y;
    setup->block[2] = (unsigned)z;
    pthread_mutex_unlock(&setup_lock);
    return CUDA_OK;
}

cuda_result cuFuncSetSharedSize(cuda_function function, unsigned bytes)
{
    struct setup *setup;
    DRIVER_TRY(setup_take(function, &setup));
    setup->shared_bytes = bytes;
    pthread_mutex_unlock(&setup_lock);
    return CUDA_OK;
}

cuda_result cuParamSetSize(cuda_function function, unsigned bytes)
{
    struct setup *setup;
    if (bytes > PARAMETERS_MAX)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(setup_take(function, &setup));
    setup->parameter_bytes = bytes;
    pthread_mutex_unlock(&setup_lock);
    return CUDA_OK;
}

cuda_result cuParamSetv(cuda_function function, int offset, void *value, unsigned bytes)
{
    struct setup *setup;
    if (!value || offset < 0 || offset > PARAMETERS_MAX ||
        bytes > (unsigned)(PARAMETERS_MAX - offset))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(setup_take(function, &setup));
    memcpy(setup->parameters + offset, value, bytes);
    pthread_mutex_unlock(&setup_lock);
    return CUDA_OK;
}

cuda_result cuParamSeti(cuda_function function, int offset, unsigned value)
{
    return cuParamSetv(function, offset, &value, sizeof value);
}

cuda_result cuParamSetf(cuda_function function, int offset, float value)
{
    return cuParamSetv(function, offset, &value, sizeof value);
}

/* A block that was never set is empty, which the launch refuses. */
cuda_result cuLaunchGridAsync(cuda_function function, int width, int height, cuda_stream stream)
{
    struct setup *setup;
    if (width < 1 || height < 1)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(setup_take(function, &setup));
    struct setup copy = *setup;
    pthread_mutex_unlock(&setup_lock);
    size_t bytes = copy.parameter_bytes;
    void *extra[] = {CUDA_LAUNCH_PARAM_BUFFER_POINTER, copy.parameters,
                     CUDA_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CUDA_LAUNCH_PARAM_END};
    return cuLaunchKernel(function, (unsigned)width, (unsigned)height, 1, copy.block[0],
                          copy.block[1], copy.block[2], copy.shared_bytes, stream, NULL, extra);
}

cuda_result cuLaunchGrid(cuda_function function, int width, int height)
{
    return cuLaunchGridAsync(function, width, height, NULL);
}

cuda_result cuLaunch(cuda_function function)
{
    return cuLaunchGrid(function, 1, 1);
}
