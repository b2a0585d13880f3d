/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/driver_error.h"

#include "common/messages.h"

const char *driver_error_name(cuda_result result)
{
    const char *name = cuda_driver_error_name(result);
    return name ? name : "unnamed";
}

uint32_t driver_error_set(struct error *why, const char *call, cuda_result result)
{
    return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(driver_call), call,
                     cuda_driver_error_sentence(result), driver_error_name(result));
}

uint32_t driver_error_set_init(struct error *why, cuda_result result)
{
    uint32_t number = error_from_cuda((int)result);
    const char *name = driver_error_name(result);
    switch (result) {
    case CUDA_ERR_STUB_LIBRARY:
        return error_set(why, number, MESSAGE_TEXT(init_stub), name);
    case CUDA_ERR_NO_DEVICE:
        return error_set(why, number, MESSAGE_TEXT(init_no_device), name);
    case CUDA_ERR_INVALID_DEVICE:
        return error_set(why, number, MESSAGE_TEXT(init_no_instance), name);
    case CUDA_ERR_SYSTEM_NOT_READY:
        return error_set(why, number, MESSAGE_TEXT(init_fabric_manager), name);
    case CUDA_ERR_SYSTEM_DRIVER_MISMATCH:
        return error_set(why, number, MESSAGE_TEXT(init_mismatch), name);
    case CUDA_ERR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return error_set(why, number, MESSAGE_TEXT(init_compat), name);
    case CUDA_ERR_UNKNOWN:
        return error_set(why, number, MESSAGE_TEXT(init_device_nodes), name);
    default:
        return driver_error_set(why, "cuInit", result);
    }
}
