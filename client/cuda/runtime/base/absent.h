/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * absent: functions of NVIDIA's runtime that ours does not carry. A program that calls one is told
 * so, once for each function on standard error, and by the error. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_ABSENT_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_ABSENT_H

#include <stdatomic.h>

#include "client/cuda/runtime/base/runtime_abi.h"

/* Names the function unless it was named before. Returns CUDART_NOT_SUPPORTED, which is then the
 * thread's last error. */
cudart_error absent_call(const char *name, atomic_flag *named);

/* The body of such a function, whatever its parameters are: none of them is read. */
#define ABSENT(name)                                                                               \
    API cudart_error name(void);                                                                   \
    cudart_error name(void)                                                                        \
    {                                                                                              \
        static atomic_flag named = ATOMIC_FLAG_INIT;                                               \
                                                                                                   \
        return absent_call(#name, &named);                                                         \
    }

#endif
