/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * enqueue: the way from a call to a stream, for everything that a stream does.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_ENQUEUE_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_ENQUEUE_H

#include "server/softgpu/device/stream.h"

/*
 * Hands the operation to the stream, under the context's lock. The operation belongs to
 * the stream from then on; the caller may keep a reference by stream_operation_ref() before.
 * CUDA_ERR_OUT_OF_MEMORY: nothing was done, and the operation is gone. Any thread, without
 * a lock of the software GPU.
 */
cuda_result enqueue_operation(struct stream *stream, struct operation *op);

#endif
