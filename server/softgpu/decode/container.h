/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * container: what the software GPU's linker makes of PTX: an ELF image as a cubin is one,
 * with the PTX in a section of its own instead of machine code. Loading it needs no
 * compiler. No other device accepts it.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DECODE_CONTAINER_H
#define GPUSHARE_SERVER_SOFTGPU_DECODE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image for compute capability arch (90 for 9.0), in memory that the caller frees. NULL when
 * memory is short. */
void *container_make(const char *text, size_t length, uint32_t arch, size_t *size);

/* Whether the bytes begin as an ELF image does. Four must be readable. */
bool container_is_elf(const void *image);

/*
 * The PTX in an ELF image, which points into it and need not end with NUL, and what the image was
 * made for. False: there is none, so it is a cubin of somebody else's. Images come without a size,
 * as cuModuleLoadData has it: one that lies about its sections is read beyond its end.
 */
bool container_read(const void *image, const char **text, size_t *length, uint32_t *arch);

#endif
