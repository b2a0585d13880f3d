/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/api/jit_log.h"

#include <string.h>

/* A value of an options array: a size is stored in the pointer itself. */
static void **find_option(unsigned count, const cuda_jit_option *options, void **values,
                          cuda_jit_option option)
{
    for (unsigned i = 0; i < count; i++)
        if (options[i] == option)
            return &values[i];
    return NULL;
}

void jit_log_write(unsigned count, const cuda_jit_option *options, void **values, const char *text)
{
    void **buffer = find_option(count, options, values, CUDA_JIT_ERROR_LOG_BUFFER);
    void **size = find_option(count, options, values, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    void **info_size = find_option(count, options, values, CUDA_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
    size_t room = size ? (size_t)(uintptr_t)*size : 0;

    if (info_size)
        *info_size = NULL;
    if (!buffer || !*buffer || room == 0) {
        if (size)
            *size = NULL;
        return;
    }
    if (room > strlen(text) + 1)
        room = strlen(text) + 1;
    memcpy(*buffer, text, room - 1);
    ((char *)*buffer)[room - 1] = '\0';
    *size = (void *)(uintptr_t)room;
}
