/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * container: what the software GPU's linker makes of PTX: an ELF image as a cubin is one,
 * with the PTX in a section of its own instead of machine code. Another section says what a
 * loader has to know, as a cubin's symbols do: so the PTX need not be read to load it. No other
 * device accepts such an image.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DECODE_CONTAINER_H
#define GPUSHARE_SERVER_SOFTGPU_DECODE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct container {
    const char *text; /* PTX; need not end with NUL */
    size_t length;
    uint32_t arch;           /* what it was made for: 90 for 9.0 */
    const void *description; /* of the PTX (description.h), at any address */
    size_t described;        /* its bytes */
};

/* An image in memory that the caller frees. NULL when memory is short. */
void *container_make(const struct container *container, size_t *size);

/* Whether the bytes begin as an ELF image does. Four must be readable. */
bool container_is_elf(const void *image);

/*
 * Reads the contents of an ELF image; the pointers lead into it. False: it holds no PTX, so it is a
 * cubin of somebody else's. Images come without a size, as cuModuleLoadData has it: one that lies
 * about its sections is read beyond its end. Its statements about its PTX may be untrue.
 */
bool container_read(const void *image, struct container *container);

/* The same for bytes whose number is known. False, too, if the image does not end within them. */
bool container_read_within(const void *image, size_t bytes, struct container *container);

#endif
