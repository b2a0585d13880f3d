/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * local_kernel: a kernel of the worker's own that has so much local memory and does nothing with
 * it.
 *
 * A driver may make room for local memory when a kernel that needs it is launched, and not before.
 * So one is launched where nobody waits for it: on each partition, by one thread of one block.
 *
 * Its module has another kernel, which lasts as long as it is told to (call_probe.h).
 *
 * Loading, launching and unloading may wait for the device. At start, or in a quiet window.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_LOCAL_KERNEL_H
#define GPUSHARE_SERVER_WORKER_DEVICE_LOCAL_KERNEL_H

#include <stdint.h>

#include "common/cuda/cuda_driver.h"

/* The name of the kernel. Drivers of tests know it by that. */
#define LOCAL_KERNEL_NAME "gpushare_local"
#define BUSY_KERNEL_NAME  "gpushare_busy"

struct local_kernel {
    cuda_module module; /* NULL: none is loaded */
    cuda_function function;
    cuda_function busy; /* NULL: the driver has none */
};

/* Loads one with so many bytes a thread, 1 to 512 KiB. Returns the driver's result; after a failure
 * nothing is loaded. */
cuda_result local_kernel_load(struct local_kernel *kernel, const struct cuda_driver *cuda,
                              uint64_t bytes);

/* Launches it and waits until it has ended. Returns the driver's result. */
cuda_result local_kernel_run(const struct local_kernel *kernel, const struct cuda_driver *cuda,
                             cuda_stream stream);

/* Launches the other one, for so many ns, and does not wait. Returns the driver's result. */
cuda_result local_kernel_occupy(const struct local_kernel *kernel, const struct cuda_driver *cuda,
                                cuda_stream stream, uint64_t nanoseconds);

/* Idempotent. */
void local_kernel_unload(struct local_kernel *kernel, const struct cuda_driver *cuda);

#endif
