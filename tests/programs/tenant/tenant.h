/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The parts of the program share this header. A call that returns another number than expected ends
 * the program, which names the call; numbers of the driver and of the runtime are the same ones.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_TENANT_TENANT_H
#define GPUSHARE_TESTS_PROGRAMS_TENANT_TENANT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cuda/runtime/runtime_exports.h"
#include "common/cuda/front/driver_exports.h"
#include "tests/support/demand.h"

#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        const int result_ = (int)(call);                                                           \
        if (result_ != (int)(expected)) {                                                          \
            fprintf(stderr, "%s:%d: %s: %s (%d), not %d\n", __FILE__, __LINE__, #call,             \
                    cudaGetErrorName(result_), result_, (int)(expected));                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) EXPECT(0, call)

/* The text of kernels.ptx. */
extern const char tenant_kernels[];

/* The address under which the kernel "add" is registered with the runtime, and that of "where". */
extern char tenant_add, tenant_where;

struct tenant {
    cuda_context context; /* the primary one, which the runtime has too */
    cuda_module module;
    cuda_function add, where;
};

/* Registers the kernels, and makes the primary context current in driver and runtime. */
void tenant_begin(struct tenant *tenant);

/* Does the second half again, behind a reset of the device. */
void tenant_load(struct tenant *tenant);

/* Prints what it has, and waits for a line of the standard input. */
void tenant_pause(const char *text);

/* Each way to allocate, alone, beside two others, and all in turns: of device memory, of host
 * memory. It prints "full N" and pauses whenever it has all that it may have. */
void fill_device(void);
void fill_host(void);

/* Prints for each way to launch on how many multiprocessors its blocks ran. */
void launch_everywhere(void);

/* Allocate, copy, launch and wait while handlers run, which let system calls go on or interrupt
 * them. */
void run_in_restarting_signals(void);
void run_in_interrupting_signals(void);

/* Works, and has no descriptor of a device node then; the second has a child that executes the
 * program again. */
void work_once(void);
void work_with_child(void);

/* Prints UUID and memory of each device that it sees, works on the first, and pauses. */
void show_devices(void);

/* Writes a line to stderr before each question whose answer the process has, and one behind all. */
void ask_what_is_local(void);

/* Works in the default streams, by each of their handles and in each form of the calls, and demands
 * the order that CUDA promises. */
void order_by_handles(void);

/* Prints "ready" behind some launches, and launches until it is ended. */
void launch_until_ended(void);

#endif
