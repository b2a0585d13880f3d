/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_stack: the stack that a program asks for, for each thread of its kernels.
 *
 * Stacks are local memory, of which the server's context has room for all clients at once. The
 * server makes more of it for a kernel that declares more, in a quiet window. So a program that
 * sets the limit has a kernel run that declares as much. A worker that takes the place of a lost
 * one begins with its own room again; the next setting of the limit makes more there.
 *
 * Bytes are those of one thread. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_STACK_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_STACK_H

#include <stdatomic.h>
#include <stdint.h>

#include "client/gpushare.h"

enum {
    DRIVER_STACK_BYTES = 1024,           /* CUDA's initial limit */
    DRIVER_STACK_BYTES_MAX = 512 * 1024, /* of local memory, CUDA C++ Programming Guide */
};

/* Of one device. All zero, it has CUDA's initial limit. */
struct driver_stack {
    _Atomic uint64_t limit; /* what was asked for and is there; 0: nothing was */
};

uint64_t driver_stack_limit(const struct driver_stack *stack);

/* Waits until there is room. Returns OUT_OF_MEMORY if the device has none, and INVALID_VALUE above
 * DRIVER_STACK_BYTES_MAX; then the limit stays. Less than before changes only what
 * driver_stack_limit returns. */
gpushare_error driver_stack_set_limit(struct driver_stack *stack, gpushare_connection *connection,
                                      uint64_t bytes);

/* The connection is closed. */
void driver_stack_forget(struct driver_stack *stack);

#endif
