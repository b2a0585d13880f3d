/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * gpu: the one GPU of this worker: its driver, its context, its two arenas.
 *
 * gpu_open_driver reserves the host arena before it touches the driver, and the device arena right
 * after cuInit, so that nothing else can have settled there. gpu_open_context makes the context and
 * maps memory in the device arena and reads it back, to prove that the arena works.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_GPU_H
#define GPUSHARE_SERVER_WORKER_DEVICE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "common/ipc/arena.h"
#include "protocol.h"
#include "server/worker/device/clearing.h"
#include "server/worker/device/local_memory.h"

struct gpu {
    const struct cuda_driver *cuda;
    cuda_device handle;
    cuda_context context; /* the primary context; current in every thread of the worker */
    uint64_t device_base; /* address of the device arena; 0: not reserved */
    uint64_t host_base;   /* address of the host arena; 0: not reserved */
    uint64_t arena_bytes; /* size of each arena */
    uint64_t granularity; /* bytes; device memory is mapped in multiples of it */
    uint64_t heap_bytes;  /* gpu_options.heap_bytes */
    struct proto_device_info info;
    struct proto_kernel_heap heap;
    struct clearing clearing;     /* the caller's: opening and gpu_close leave it alone */
    struct local_memory local;    /* worker_start opens it */
    struct gpu_host_range *hosts; /* the parts of the host arena in use; control thread */
    size_t host_count, host_room;
};

struct gpu_host_range {
    uint64_t start, end;
};

/* A device to open. */
struct gpu_options {
    const struct cuda_driver *cuda; /* the caller's; it must outlive the device */
    /* A driver that was told to show one device only numbers it 0, so with a UUID the ordinal only
     * names the device. */
    int ordinal;
    const uint8_t *uuid; /* 16 bytes; NULL: the device of this ordinal */
    struct arena arena;
    uint64_t heap_bytes; /* of the heap that kernels allocate from; 0: as the driver has it */
};

/*
 * A device is opened in two steps, between which a worker may wait. gpu_open_driver does all that
 * needs no context: it reserves both arenas and starts the driver. gpu_open_context retains the
 * primary context, makes it current in the calling thread, and has the heap made if heap_bytes asks
 * for one. Each returns 0, or an error number with one sentence in why; nothing is left open then.
 */
uint32_t gpu_open_driver(struct gpu *gpu, const struct gpu_options *options, struct error *why);
uint32_t gpu_open_context(struct gpu *gpu, int ordinal, struct error *why);

/* Finds a device of a driver that was initialised, by its UUID or, with uuid NULL, by its number.
 * Returns 0, or an error number with a sentence in why. */
uint32_t gpu_find_device(const struct cuda_driver *cuda, int ordinal, const uint8_t *uuid,
                         cuda_device *device, struct error *why);

/* Makes the context current in the calling thread, which needs that before any other call of the
 * driver. Returns the driver's result. */
cuda_result gpu_enter(const struct gpu *gpu);

/* Mark part of the host arena as used, or as free again. Without this, mapping a buffer could
 * replace a neighbour's. gpu_host_take returns 0; -EEXIST if the part overlaps one in use; -ENOMEM.
 * Control thread. */
int gpu_host_take(struct gpu *gpu, uint64_t address, uint64_t count);
void gpu_host_return(struct gpu *gpu, uint64_t address);

/* Whether an address is in neither arena, so that the driver chose it. Any thread. */
static inline bool gpu_is_outside(const struct gpu *gpu, uint64_t address)
{
    return address - gpu->device_base >= gpu->arena_bytes &&
           address - gpu->host_base >= gpu->arena_bytes;
}

/* Releases the context and both arenas, which nothing may use any more. Idempotent. */
void gpu_close(struct gpu *gpu);

#endif
