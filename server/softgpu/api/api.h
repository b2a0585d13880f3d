/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * api: the exported calls of the software GPU's libcuda.so.1, under the names that the driver's
 * header gives them, and helpers that the api_*.c files share. These files check arguments and call
 * the module of the subject; common/cuda/front/ stands on them. Any thread.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_API_API_H
#define GPUSHARE_SERVER_SOFTGPU_API_API_H

#include "common/cuda/front/front.h"
#include "common/cuda/front/driver_exports.h"
#include "server/softgpu/api/softgpu_exports.h"
#include "server/softgpu/device/device.h"
#include "server/softgpu/device/stream.h"

/* The worker's table has the same prototypes, or this does not compile. */
#define X(name, symbol, version, need, params) API cuda_result symbol params;
CUDA_DRIVER_ENTRIES(X)
#undef X

/* Gives the device of the thread's current context. Returns CUDA_ERR_INVALID_CONTEXT without
 * one, or the reason why no call may go ahead. */
cuda_result api_current(struct device **device);

/* Gives the stream of a handle, which may be one of the special values. Returns
 * CUDA_ERR_INVALID_HANDLE if there is none. */
cuda_result api_stream(cuda_stream handle, struct stream **stream);

/* Waits for all work of the device. */
cuda_result api_await(struct device *device);

/* Allocates a program's memory on the device. */
cuda_result api_memory_alloc(struct device *device, cuda_device_ptr *ptr, size_t size);

/* Green contexts, as their streams need them: whether a context is not destroyed; and that a
 * stream of it is gone. The second is called with the engine's lock held. */
bool api_green_alive(const struct cuda_green_ctx_object *green);
void api_green_stream_gone(struct cuda_green_ctx_object *green);

/* Bytes of local memory a thread that there is room for in this green context by itself. */
atomic_size_t *api_green_local_bytes(struct cuda_green_ctx_object *green);

#endif
