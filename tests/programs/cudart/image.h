/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: a fatbin of one PTX text, uncompressed, in the wrapper that nvcc's start-up code
 * registers.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_CUDART_IMAGE_H
#define GPUSHARE_TESTS_PROGRAMS_CUDART_IMAGE_H

#include <stddef.h>
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
        struct {
            uint32_t text, reserved;
            char empty[8];
        } options_record;
        char text[IMAGE_TEXT_MAX];
    } fatbin;
};

/*
 * nvcc's entry of a PTX text names a record behind its fixed part, which names the options for the
 * compilation, even if these are empty: examples/unmodified has such an entry. NVIDIA's driver
 * ended by a segmentation fault at images without them.
 */
enum { IMAGE_OPTIONS_AT = 64, IMAGE_TEXT_AT = IMAGE_OPTIONS_AT + 8, IMAGE_ENTRY_BYTES = 80 };
_Static_assert(offsetof(struct image, fatbin.options_record) -
                       offsetof(struct image, fatbin.kind) ==
                   IMAGE_OPTIONS_AT,
               "the fixed part of an entry");

/* The image stays where it is: its wrapper points into it. A text that is too long ends the
 * program. */
static inline void image_make(struct image *image, const char *text, uint32_t arch)
{
    const size_t length = strlen(text);
    const size_t payload_bytes = (length / 8 + 1) * 8; /* with a NUL, and in whole words */
    if (payload_bytes > IMAGE_TEXT_MAX)
        abort();
    *image = (struct image){
        .wrapper = {FATBIN_WRAPPER_MAGIC, 1, &image->fatbin, NULL},
        .fatbin = {.magic = FATBIN_MAGIC,
                   .version = 1,
                   .header_bytes = FATBIN_HEADER_BYTES,
                   .size = IMAGE_ENTRY_BYTES + payload_bytes,
                   .kind = FATBIN_PTX,
                   .entry_version = 0x101,
                   .entry_header_bytes = IMAGE_ENTRY_BYTES,
                   .payload_bytes = payload_bytes,
                   .options = IMAGE_OPTIONS_AT,
                   .options_record.text = IMAGE_TEXT_AT,
                   .major = 7,
                   .arch = arch,
                   .flags = 0x11},
    };
    memcpy(image->fatbin.text, text, length);
}

#endif
