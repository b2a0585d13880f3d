/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/kernel.h"

#include "common/util.h"
#include "server/worker/device/gpu.h"

uint32_t kernel_attribute(const struct cuda_driver *cuda, cuda_function function,
                          cuda_function_attribute which)
{
    int value = 0;
    if (cuda->cuFuncGetAttribute(&value, which, function) != CUDA_OK || value < 0)
        return 0;
    return (uint32_t)value;
}

/* Setting the attribute takes the context's lock, and may wait for copies. So each function is
 * raised to all that it can have, in the window of its load, and what a client sets is our own
 * affair from then on. */
uint32_t kernel_raise_shared(const struct gpu *gpu, cuda_function function)
{
    const struct cuda_driver *cuda = gpu->cuda;
    uint64_t most = saturating_sub(gpu->info.block_shared_optin_bytes,
                                   kernel_attribute(cuda, function, CUDA_FUNC_SHARED_SIZE_BYTES));
    cuda_result result =
        cuda->cuFuncSetAttribute(function, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)most);
    return result == CUDA_OK ? (uint32_t)most : 0;
}

/* More functions would make the window long; those are raised when a client first asks. */
#define RAISED_MAX 256

void kernel_raise_all(const struct gpu *gpu, cuda_module module)
{
    const struct cuda_driver *cuda = gpu->cuda;
    cuda_function functions[RAISED_MAX];
    unsigned count = 0;
    if (!cuda->cuModuleGetFunctionCount || !cuda->cuModuleEnumerateFunctions ||
        cuda->cuModuleGetFunctionCount(&count, module) != CUDA_OK || count > RAISED_MAX ||
        cuda->cuModuleEnumerateFunctions(functions, count, module) != CUDA_OK)
        return;
    for (unsigned i = 0; i < count; i++)
        kernel_raise_shared(gpu, functions[i]);
}
