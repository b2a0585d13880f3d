/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_runtime: NVIDIA's device runtime (libcudadevrt.a), which programs link with their kernels.
 * It has no PTX for devices before 12.1. The functions by which the blocks of a grid wait for each
 * other are here in PTX of our own; those by which kernels launch kernels are not. Any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_LINK_DEVICE_RUNTIME_H
#define GPUSHARE_COMMON_CUDA_LINK_DEVICE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the bytes are a fatbin of the device runtime. */
bool device_runtime_is_fatbin(const void *data, size_t bytes);

/* Whether the bytes are the library, or the object in it. */
bool device_runtime_is_library(const void *data, size_t bytes);

/* The PTX. Its functions are weak. */
extern const char device_runtime_text[];

#endif
