/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * clearing: writing device memory on the worker's own behalf, before its client may use it.
 *
 * A fill would be a kernel: it waits for room on multiprocessors that resident kernels may never
 * leave, and takes others' room. So zeros come from pinned host memory, by a copy engine, on a
 * stream that was made at start. Copies are handed over in slices, with the end of each awaited, so
 * that other copies come between them and no quiet window has to wait for more than one.
 *
 * Any threads that may wait for the device, several at once; no lock is taken.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_CLEARING_H
#define GPUSHARE_SERVER_WORKER_DEVICE_CLEARING_H

#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "server/worker/calls/quiet_calls.h"

struct clearing {
    const struct cuda_driver *cuda; /* NULL: not open */
    cuda_stream stream;
    void *zeros; /* pinned */
};

/* Makes the stream and the zeros. The context is current. After a failure nothing is left. */
cuda_result clearing_open(struct clearing *clearing, const struct cuda_driver *cuda);
/* Idempotent. */
void clearing_close(struct clearing *clearing);

/* Zeroes device memory, and returns when the device has done so. Waits for an open window of calls
 * to end before each slice. */
cuda_result clearing_zero(const struct clearing *clearing, struct quiet_calls *calls,
                          uint64_t address, uint64_t count);

/* Writes values likewise. */
cuda_result clearing_write(const struct clearing *clearing, struct quiet_calls *calls,
                           uint64_t address, const void *values, size_t count);

/* Copies device memory likewise. The two ranges do not overlap. */
cuda_result clearing_copy(const struct clearing *clearing, struct quiet_calls *calls, uint64_t to,
                          uint64_t from, uint64_t count);

#endif
