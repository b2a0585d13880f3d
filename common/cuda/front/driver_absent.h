/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_absent: functions of NVIDIA's driver that this library does not carry. Each is exported,
 * so that programs which are linked with it run; a call is named once on standard error and
 * refused. cuGetProcAddress does not find it, so that programs which probe fall back. A case that a
 * carried function refuses is named too. Any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_FRONT_DRIVER_ABSENT_H
#define GPUSHARE_COMMON_CUDA_FRONT_DRIVER_ABSENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/cuda/cuda_driver.h"

/* A row of cuGetProcAddress: name and version of a function that is not carried. */
struct absent_row {
    const char *name;
    int version;
    bool per_thread; /* the form for per-thread default streams */
};

/* generate_exports.py writes them. */
extern const struct absent_row absent_rows[];
extern const size_t absent_row_count;

/* Names the function unless it was named before. Returns CUDA_ERR_NOT_SUPPORTED. */
cuda_result driver_absent_call(const char *name, atomic_flag *named);

/* Refuses what a carried function does not do: an expression with the value CUDA_ERR_NOT_SUPPORTED,
 * as the compiler can see. what: the function, and the case. */
#define DRIVER_ABSENT_CASE(what)                                                                   \
    (__extension__({                                                                               \
        static atomic_flag named_ = ATOMIC_FLAG_INIT;                                              \
        (void)driver_absent_call(what, &named_);                                                   \
        CUDA_ERR_NOT_SUPPORTED;                                                                    \
    }))

/* The body of such a function, whatever its parameters are: none of them is read. */
#define ABSENT(name)                                                                               \
    __attribute__((visibility("default"))) cuda_result name(void);                                 \
    cuda_result name(void)                                                                         \
    {                                                                                              \
        static atomic_flag named = ATOMIC_FLAG_INIT;                                               \
        return driver_absent_call(#name, &named);                                                  \
    }

#endif
