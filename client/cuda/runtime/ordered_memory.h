/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ordered_memory: stream-ordered allocation on a driver that lacks it (cuMemAllocAsync): a
 * memory_pool for each context. Any thread; the context of the calls is the current one.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_ORDERED_MEMORY_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_ORDERED_MEMORY_H

#include "client/cuda/runtime/base/runtime_abi.h"

/* Allocates memory that work in the stream may use from now on. */
cudart_error ordered_memory_alloc(cuda_device_ptr *ptr, size_t size, cuda_stream stream);

/* Frees a whole allocation behind the work that is in the stream now. Does not wait. Returns 0, or
 * CUDART_INVALID_VALUE for what is no allocation or is free already. */
cudart_error ordered_memory_free(cuda_device_ptr ptr, cuda_stream stream);

/* Before an allocation is freed at once: returns false if it is free already. */
bool ordered_memory_disown(cuda_device_ptr ptr);

/* Gives freed blocks of the current context back to the driver: the first those whose streams have
 * come so far; the second all, and waits for their streams. The second returns whether there were
 * any. */
void ordered_memory_trim(void);
bool ordered_memory_await(void);

/* The context is about to be reset: its blocks go with it. */
void ordered_memory_forget(cuda_context context);

#endif
