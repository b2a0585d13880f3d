/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cudart: the parts of the program for libcudart.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_CUDART_CUDART_H
#define GPUSHARE_TESTS_PROGRAMS_CUDART_CUDART_H

#include <stdio.h>
#include <stdlib.h>

#include "client/cuda/runtime/runtime_exports.h"
#include "tests/support/demand.h"

#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        cudart_error error_ = (call);                                                              \
        if (error_ != (expected)) {                                                                \
            fprintf(stderr, "%s:%d: %s: %s (%d), not %d\n", __FILE__, __LINE__, #call,             \
                    cudaGetErrorName(error_), error_, (expected));                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The address under which the kernels' variable is registered. */
extern char scale;

/* The _ptsz and _ptds forms. handle: the image's. */
void check_per_thread(void **handle);

/* Blocks of rows and planes. */
void check_blocks(void);

/* Questions, preferences, pools. kernel: the address under which scaled_add is registered. */
void check_queries(const char *kernel);

/* Handles of kernels, libraries, functions of the driver. text: of kernels.ptx. */
void check_libraries(const char *host, const char *text);

/* Managed variables. The context is reset afterwards. */
void check_managed_variables(void);

/* Separately compiled parts. */
void check_parts(void);

/* Calls that no other part makes; kernel: as above. The context is there afterwards. */
void check_rest(const char *kernel);

/* cudaThreadExit, where the release has it. */
void reset_by_old_name(void);

#endif
