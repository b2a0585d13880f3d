/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * gpu: the one GPU of this worker: its driver, its context, its two arenas.
 *
 * The host arena is reserved before the driver is touched and the device arena
 * right after cuInit, so that nobody else can have settled there; both are proven
 * once there is a context.
 */
#ifndef GPUSHARE_SERVER_WORKER_GPU_H
#define GPUSHARE_SERVER_WORKER_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "protocol.h"

struct gpu {
    const struct cuda_driver *cuda;
    cuda_device handle;
    cuda_context context; /* the primary context; current in every thread of the worker */
    uint64_t device_base; /* of the device arena */
    uint64_t host_base;   /* of the host arena */
    uint64_t arena_bytes; /* of each */
    uint64_t granularity; /* of device memory, bytes */
    struct proto_device_info info;
    struct gpu_host_range *hosts; /* what of the host arena is in use; control thread */
    size_t host_count, host_room;
};

struct gpu_host_range {
    uint64_t start, end;
};

/*
 * Reserves both arenas, starts the driver, retains the primary context and makes
 * it current in the calling thread. cuda stays the caller's and must outlive the
 * device. Returns 0, or a number of the error table with one sentence in why.
 */
uint32_t gpu_open(struct gpu *device, const struct cuda_driver *cuda, int ordinal,
                  uint64_t device_base, uint64_t host_base, uint64_t arena_bytes,
                  struct error *why);

/* Makes the context current in the calling thread. Returns the driver's result. */
cuda_result gpu_enter(const struct gpu *device);

/* Marks part of the host arena as used: mapping over a neighbour's buffer would replace it. Returns
 * 0, -EEXIST, -ENOMEM. Control thread. */
int gpu_host_take(struct gpu *device, uint64_t address, uint64_t count);
void gpu_host_return(struct gpu *device, uint64_t address);

/* Gives context and arenas back. Nothing of the device may be in use any more. */
void gpu_close(struct gpu *device);

#endif
