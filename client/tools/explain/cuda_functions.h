/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cuda_functions: each function of CUDA's driver and runtime, and whether gpushare's libraries
 * carry it. generate_exports.py writes the table from those that the libraries are built from.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_CUDA_FUNCTIONS_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_CUDA_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* In the order of what is best for a program. */
enum cuda_function_state {
    CUDA_FUNCTION_UNKNOWN, /* the library does not have it */
    CUDA_FUNCTION_REFUSED, /* each call fails as not supported */
    CUDA_FUNCTION_IN_PART,
    CUDA_FUNCTION_CARRIED,
    CUDA_FUNCTION_STATES
};

/* The releases of CUDA whose runtime gpushare has. */
enum cuda_function_release {
    CUDA_FUNCTION_RELEASE_12,
    CUDA_FUNCTION_RELEASE_13,
    CUDA_FUNCTION_RELEASES
};

struct cuda_function {
    const char *symbol;
    uint8_t states[CUDA_FUNCTION_RELEASES]; /* enum cuda_function_state */
};

enum { CUDA_FUNCTIONS_MAX = 2048 };

/* In the order of strcmp. */
extern const struct cuda_function cuda_functions[];
extern const size_t cuda_function_count;

#endif
