/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/base/runtime_pointer.h"

#include "client/cuda/runtime/base/runtime_driver.h"

bool runtime_pointer_is_of_device(const void *ptr)
{
    const cuda_device_ptr address = (cuda_device_ptr)(uintptr_t)ptr;
    unsigned kind = 0;
    char managed = 0;

    if (DRIVER(cuPointerGetAttribute, &kind, CUDA_POINTER_MEMORY_TYPE, address) != CUDART_OK ||
        kind != CUDA_MEMORYTYPE_DEVICE)
        return false;
    return DRIVER(cuPointerGetAttribute, &managed, CUDA_POINTER_IS_MANAGED, address) != CUDART_OK ||
           !managed;
}
