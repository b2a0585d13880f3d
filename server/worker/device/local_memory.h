/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * local_memory: the local memory (stacks, spilled registers) that the device has room for.
 *
 * The driver keeps it for every thread that the device can run at once. The first launch of a
 * kernel that needs more makes the driver wait until the device is idle, with the context's lock
 * held (cuda.h, cuCtxSetLimit and CU_LIMIT_STACK_SIZE). So the submitter launches no such kernel:
 * its ring waits, and the quiet thread makes room in a quiet window. Room is never given back.
 *
 * Bytes are those of one thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_LOCAL_MEMORY_H
#define GPUSHARE_SERVER_WORKER_DEVICE_LOCAL_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "server/worker/device/local_kernel.h"

struct local_memory {
    _Atomic uint64_t room; /* launches that need no more wait for nothing */
    atomic_bool wished;
    struct local_kernel kernel; /* needs all of the room; of the thread that makes more */
    cuda_result unloadable;     /* why the driver loads none; CUDA_OK: it does */
};

/* Asks the driver for the room that there is; none, if it does not say. At start. The calling
 * thread has the context. */
void local_memory_open(struct local_memory *local, const struct cuda_driver *cuda);
/* At the end. Idempotent. */
void local_memory_close(struct local_memory *local, const struct cuda_driver *cuda);

/* Any thread. */
static inline uint64_t local_memory_room(const struct local_memory *local)
{
    /* Acquired: room was made before a launch relies on it. */
    return atomic_load_explicit(&local->room, memory_order_acquire);
}

/* Makes room for so much. streams: one CUstream of each partition. The quiet thread, in a quiet
 * window. Returns the driver's result; after a failure there is as much as before. */
cuda_result local_memory_grow(struct local_memory *local, const struct cuda_driver *cuda,
                              uint64_t bytes, const cuda_stream *streams, uint32_t count);

/* Makes the room that there is on a new partition too, which has this CUstream. At start, or the
 * quiet thread in a quiet window. Returns the driver's result. */
cuda_result local_memory_extend(const struct local_memory *local, const struct cuda_driver *cuda,
                                cuda_stream stream);

/* A client's client_shared.local_wanted was raised: the control thread has to look; it must be
 * woken. Submitter. */
void local_memory_wish(struct local_memory *local);
/* Whether that was so since the last call. Control thread. */
bool local_memory_take_wish(struct local_memory *local);

#endif
