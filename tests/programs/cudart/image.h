/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: a fatbin of one PTX text, uncompressed, in the wrapper that nvcc's start-up code
 * registers.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_CUDART_IMAGE_H
#define GPUSHARE_TESTS_PROGRAMS_CUDART_IMAGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/fatbin.h"

enum { IMAGE_TEXT_MAX = 8192 };

struct image {
    struct {
        uint32_t magic, version;
        const void *data;
        void *pieces;
    } wrapper;
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t size;
        uint16_t kind, entry_version;
        uint32_t entry_header_bytes;
        uint64_t payload_bytes;
        uint32_t compressed, options;
        uint16_t minor, major;
        uint32_t arch, name, name_bytes;
        uint64_t flags, zero, uncompressed;
        char text[IMAGE_TEXT_MAX];
    } fatbin;
};

/* The image stays where it is: its wrapper points into it. A text that is too long ends the
 * program. */
static inline void image_make(struct image *image, const char *text, uint32_t arch)
{
    const size_t length = strlen(text);
    if (length >= IMAGE_TEXT_MAX)
        abort();
    *image = (struct image){
        .wrapper = {FATBIN_WRAPPER_MAGIC, 1, &image->fatbin, NULL},
        .fatbin = {.magic = FATBIN_MAGIC,
                   .version = 1,
                   .header_bytes = FATBIN_HEADER_BYTES,
                   .size = 64 + IMAGE_TEXT_MAX,
                   .kind = FATBIN_PTX,
                   .entry_version = 0x101,
                   .entry_header_bytes = 64,
                   .payload_bytes = IMAGE_TEXT_MAX,
                   .major = 7,
                   .arch = arch,
                   .flags = 0x11},
    };
    memcpy(image->fatbin.text, text, length);
}

#endif
