/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * code_image: what a client gave as code: PTX text, a cubin, or a fatbin of which the
 * fitting entry is taken.
 *
 * The file is mapped, not copied: it is sealed, nobody can change it any more, and its
 * bytes count against its client's limit already. The unpacked entry of a fatbin is
 * there only between code_image_unpack and code_image_pack.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CODE_IMAGE_H
#define GPUSHARE_SERVER_WORKER_CODE_CODE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum code_image_kind { CODE_IMAGE_NONE, CODE_IMAGE_PTX, CODE_IMAGE_CUBIN };

struct code_image {
    enum code_image_kind kind;
    const uint8_t *bytes; /* NULL: packed */
    size_t count;
    void *file; /* the mapping */
    size_t file_bytes;
    void *unpacked; /* malloc'ed; NULL if bytes lie in the mapping */
};

/* Maps count bytes from the start of fd, which must be sealed and stays the caller's. 0 or an error
 * number with a sentence. */
uint32_t code_image_open(struct code_image *image, int fd, uint64_t count, struct error *why);

/* Says what it is. compute: 90 for compute capability 9.0; most: bytes of memory that unpacking may
 * take. Likewise. */
uint32_t code_image_unpack(struct code_image *image, uint32_t compute, size_t max,
                           struct error *why);
/* Bytes of memory that it takes unpacked. */
size_t code_image_memory(const struct code_image *image);
/* Frees them; the kind stays known. */
void code_image_pack(struct code_image *image);
void code_image_release(struct code_image *image);

#endif
