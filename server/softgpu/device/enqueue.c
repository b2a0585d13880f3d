/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/enqueue.h"

#include "server/softgpu/device/context_lock.h"
#include "server/softgpu/device/cost.h"

cuda_result enqueue_operation(struct stream *stream, struct operation *op)
{
    struct device *device = stream->device;
    int error;

    context_lock_submit(device);
    cost_pay_enqueue();
    engine_lock();
    error = stream_submit(stream, op);
    engine_unlock();
    context_lock_release(device);
    return error < 0 ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}
