/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runtime_error: the names of errors, and the last error of each thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_ERROR_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_ERROR_H

#include "client/cuda/runtime/base/runtime_abi.h"

/* Makes an error the thread's last one, and returns it. */
cudart_error runtime_error_keep(cudart_error error) __attribute__((cold));

/* The same for a failure; success leaves the last error alone. So a public function ends with
 * this. */
static inline cudart_error runtime_error_note(cudart_error error)
{
    return __builtin_expect(error == CUDART_OK, 1) ? CUDART_OK : runtime_error_keep(error);
}

/* The thread's last error. The second also forgets it, unless the context is lost for good. */
cudart_error runtime_error_last(void);
cudart_error runtime_error_take(void);

/* CUDA's own name ("cudaErrorInvalidValue"), and a sentence of ours. Never NULL; static. */
const char *runtime_error_name(cudart_error error);
const char *runtime_error_sentence(cudart_error error);

#endif
