/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_image.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

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
