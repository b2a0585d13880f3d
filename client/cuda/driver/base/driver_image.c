/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_image.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/session/failure.h"
#include "common/cuda/fatbin.h"
#include "common/util.h"

/* A cubin's size is that of its farthest part. The image is the program's own, and as whole as it
 * says. */
static size_t cubin_size(const void *image)
{
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof head);
    uint64_t end = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    end = max(end, head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize);
    for (unsigned i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, (const char *)image + head.e_shoff + (size_t)i * head.e_shentsize,
               sizeof section);
        if (section.sh_type != SHT_NOBITS)
            end = max(end, section.sh_offset + section.sh_size);
    }
    return end;
}

size_t driver_image_measure(const void **image)
{
    const uint32_t fatbin = FATBIN_MAGIC;
    *image = fatbin_unwrap(*image);
    if (!*image)
        return 0;
    if (fatbin_begins_with(*image, &fatbin, sizeof fatbin))
        return fatbin_size(*image);
    return fatbin_begins_with(*image, ELFMAG, SELFMAG) ? cubin_size(*image) : strlen(*image);
}

/* A log buffer's size is the value of its option, in place of a pointer, and is replaced by the
 * bytes that were written. */
static void write_log(unsigned count, const cuda_jit_option *options, void **values,
                      cuda_jit_option buffer, cuda_jit_option buffer_size, const char *text)
{
    char *to = NULL;
    void **room = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == buffer)
            to = values[i];
        if (options[i] == buffer_size)
            room = &values[i];
    }
    size_t bytes = room ? (size_t)(uint32_t)(uintptr_t)*room : 0;
    if (to && bytes)
        snprintf(to, bytes, "%s", text);
    if (room)
        *room = (void *)(uintptr_t)(to && bytes ? min(strlen(text), bytes - 1) : 0);
}

void driver_image_log_text(unsigned count, const cuda_jit_option *options, void **values,
                           const char *text)
{
    write_log(count, options, values, CUDA_JIT_ERROR_LOG_BUFFER,
              CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, text);
    write_log(count, options, values, CUDA_JIT_INFO_LOG_BUFFER, CUDA_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
              "");
}

void driver_image_log(unsigned count, const cuda_jit_option *options, void **values,
                      cuda_result result)
{
    driver_image_log_text(count, options, values, result == CUDA_OK ? "" : failure_sentence());
}
