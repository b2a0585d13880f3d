/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * jit_log: the buffer among a caller's options that says why an image was refused.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_API_JIT_LOG_H
#define GPUSHARE_SERVER_SOFTGPU_API_JIT_LOG_H

#include "common/cuda/cuda_driver.h"

/* Writes what fits, with its NUL, and how much that was, where the options ask for it; else
 * nothing. options and values: count of each. */
void jit_log_write(unsigned count, const cuda_jit_option *options, void **values, const char *text);

#endif
