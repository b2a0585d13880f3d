/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runtime_context: the context in which a thread's calls work. A context that the program made
 * current through the driver wins. Otherwise it is the primary one of the thread's device, which is
 * retained at the first use by any thread and kept until the process ends, or until it is reset.
 * Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_CONTEXT_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/cuda/runtime/base/runtime_abi.h"
#include "client/cuda/runtime/base/runtime_driver.h"

/* Whether any context was reset, so that a thread's current one may be such a one. Read by the
 * function below alone. */
extern atomic_bool runtime_context_any_ended;

/* Gives the thread's current context, without making one. False: runtime_context_enter has to be
 * asked. Every launch comes here. */
static inline bool runtime_context_current(cuda_context *context)
{
    *context = NULL;
    return atomic_load_explicit(&runtime_driver_opened, memory_order_acquire) &&
           DRIVER(cuCtxGetCurrent, context) == CUDART_OK && *context &&
           !atomic_load_explicit(&runtime_context_any_ended, memory_order_relaxed);
}

/* Opens the driver, and makes a context current if the thread has none. *context may be NULL. */
cudart_error runtime_context_enter(cuda_context *context);

/* The device's primary context, which is made if it has to be. None becomes current. */
cudart_error runtime_context_primary(int ordinal, cuda_context *context);

/* The device of the thread's calls. No context is made for it. */
cudart_error runtime_context_device(int *ordinal);

/* Ends the primary context of the thread's device, which the next call that needs it makes again.
 * Before that, forget is told of it: all that stands on it goes. Nothing is done if no call has
 * needed it yet. */
cudart_error runtime_context_reset(void (*forget)(cuda_context context));

/* Makes the device's primary context current, whatever was current before. */
cudart_error runtime_context_select(int ordinal);

#endif
