/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * context_loss: what the worker was doing when a result of the driver said that the device context
 * is lost. Each case has a sentence of its own. Any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_CONTEXT_LOSS_H
#define GPUSHARE_SERVER_WORKER_DEVICE_CONTEXT_LOSS_H

#include "common/cuda/cuda_driver.h"
#include "common/error.h"

enum context_loss {
    CONTEXT_LOSS_WORK, /* nothing: the completer asks the device whether its work still runs */
    CONTEXT_LOSS_ENTERING,
    CONTEXT_LOSS_REQUEST,
    CONTEXT_LOSS_MAKING,
    CONTEXT_LOSS_LOCAL_MEMORY,
    CONTEXT_LOSS_LAUNCH,
    CONTEXT_LOSS_COPY,
    CONTEXT_LOSS_FILL,
    CONTEXT_LOSS_EVENT,
    CONTEXT_LOSS_ORDER,
    CONTEXT_LOSS_BINDING, /* finding a CUstream for a ring */
    CONTEXT_LOSS_COMPLETION,
};

/* Sets *why to the sentence of the case and to the error number that belongs to result, which is
 * not CUDA_OK. Returns the number. */
uint32_t context_loss_set(struct error *why, enum context_loss loss, unsigned device,
                          cuda_result result);

#endif
