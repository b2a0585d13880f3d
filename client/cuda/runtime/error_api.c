/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/runtime_exports.h"

cudart_error cudaGetLastError(void)
{
    return runtime_error_take();
}

cudart_error cudaPeekAtLastError(void)
{
    return runtime_error_last();
}

const char *cudaGetErrorName(cudart_error error)
{
    return runtime_error_name(error);
}

const char *cudaGetErrorString(cudart_error error)
{
    return runtime_error_sentence(error);
}
