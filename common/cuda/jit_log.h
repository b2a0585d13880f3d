/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* jit_log: the buffers among the options of a load or a link in which a program is told why it
 * failed. Any thread. */
#ifndef GPUSHARE_COMMON_CUDA_JIT_LOG_H
#define GPUSHARE_COMMON_CUDA_JIT_LOG_H

#include "common/cuda/cuda_driver.h"

/*
 * Fills the buffers that the options name: that of errors with what fits of the text, and that of
 * information with nothing. In the place of a buffer's size comes the number of bytes that were
 * filled, with the zero byte, or 0 without a text. The arrays have `count` entries, and may be NULL
 * if that is 0.
 */
void jit_log_write(unsigned count, const cuda_jit_option *options, void **values, const char *text);

#endif
