/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* whole_gpu: opens a device in both steps, as a test needs it. */
#ifndef GPUSHARE_TESTS_UNIT_WORKER_WHOLE_GPU_H
#define GPUSHARE_TESTS_UNIT_WORKER_WHOLE_GPU_H

#include "server/worker/device/gpu.h"

/* Returns 0, or the error number of the step that failed, with a sentence in why. */
static inline uint32_t whole_gpu_open(struct gpu *gpu, const struct gpu_options *options,
                                      struct error *why)
{
    uint32_t error = gpu_open_driver(gpu, options, why);
    return error ? error : gpu_open_context(gpu, options->ordinal, why);
}

#endif
