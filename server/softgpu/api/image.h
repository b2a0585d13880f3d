/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: what is given to the loader or the linker, and the PTX in it: a text, a fatbin,
 * nvcc's wrapper of one, or what our own linker made. Any thread.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_API_IMAGE_H
#define GPUSHARE_SERVER_SOFTGPU_API_IMAGE_H

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "server/softgpu/decode/container.h"
#include "server/softgpu/exec/module.h"

struct image {
    const char *text; /* PTX; need not end with NUL */
    size_t length;
    char *owned;                /* the text, where it had to be unpacked */
    bool compiled;              /* by the linker: loading it needs no compiler */
    struct container container; /* of a compiled one */
};

/* Finds the PTX. It may point into the bytes, which must stay until image_close(). */
cuda_result image_open(struct image *image, const void *bytes, struct error *error);
void image_close(struct image *image);

/* Reads a file whole, with a zero byte behind it. *text is malloc'ed. */
cuda_result image_read(const char *path, char **text, size_t *bytes);

/* Compiles its text, if this driver and this device can. An image that the linker made needs
 * no compiler, and is loaded without this. */
cuda_result image_module(const struct image *image, struct module **module, struct error *error);

#endif
