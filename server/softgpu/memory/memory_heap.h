/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory_heap: the heap of a device from which its kernels allocate: its size, its memory and its
 * life. It is made with the first module that needs it, and ends with the device's last context.
 *
 * Kernels of all devices reach its blocks. Nothing else does: to copies, fills and words that
 * streams write its range is no memory. device: below SETTINGS_MAX_DEVICES. Any thread.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_HEAP_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_HEAP_H

#include <stddef.h>

#include "common/cuda/cuda_driver.h"

struct kernel_heap;

/* The bytes that the heap has or will have. Setting them returns CUDA_ERR_INVALID_VALUE once the
 * heap is there. */
size_t memory_heap_size(unsigned device);
cuda_result memory_heap_set_size(unsigned device, size_t bytes);

/* Makes the heap unless it is there. Returns CUDA_ERR_SHARED_OBJECT_INIT_FAILED without memory. */
cuda_result memory_heap_open(unsigned device);
/* Ends the heap if there is one; the next one has CUDA's initial size. */
void memory_heap_close(unsigned device);

/* The heap, NULL if there is none. It is there at least until memory_leave(). */
struct kernel_heap *memory_heap_of(unsigned device);

#endif
