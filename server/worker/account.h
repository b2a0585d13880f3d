/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * account: what each client has used of the device.
 */
#ifndef GPUSHARE_SERVER_WORKER_ACCOUNT_H
#define GPUSHARE_SERVER_WORKER_ACCOUNT_H

#include <stdint.h>

#include "common/cuda_driver.h"

/* Counted by the submitter, under client->lock. */
struct account_client {
    uint64_t launches;
    uint64_t copies;
    uint64_t copied_bytes;
    uint64_t gpu_nanoseconds;
};

/* A stretch of one stream's work between two timing events. */
struct account_span {
    cuda_event start;
};

#endif
