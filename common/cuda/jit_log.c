/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/jit_log.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"

/* A size is the value of its option itself, in place of a pointer. The driver reads 32 bits. */
static void write_buffer(unsigned count, const cuda_jit_option *options, void **values,
                         cuda_jit_option buffer, const char *text)
{
    /* The option of a buffer's size follows that of the buffer. */
    const cuda_jit_option buffer_size = (cuda_jit_option)(buffer + 1);
    char *to = NULL;
    void **size = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == buffer)
            to = values[i];
        if (options[i] == buffer_size)
            size = &values[i];
    }
    const size_t room = size ? (uint32_t)(uintptr_t)*size : 0;
    if (to && room)
        snprintf(to, room, "%s", text);
    if (size)
        *size = (void *)(uintptr_t)(to && *text ? min(strlen(text) + 1, room) : 0);
}

_Static_assert(CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES == CUDA_JIT_ERROR_LOG_BUFFER + 1 &&
                   CUDA_JIT_INFO_LOG_BUFFER_SIZE_BYTES == CUDA_JIT_INFO_LOG_BUFFER + 1,
               "each size follows its buffer");

void jit_log_write(unsigned count, const cuda_jit_option *options, void **values, const char *text)
{
    write_buffer(count, options, values, CUDA_JIT_ERROR_LOG_BUFFER, text);
    write_buffer(count, options, values, CUDA_JIT_INFO_LOG_BUFFER, "");
}
