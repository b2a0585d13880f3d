/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: what a client gave as code: PTX text, a cubin, or a fatbin of which the
 * fitting entry is taken.
 *
 * The file is mapped, not copied: it is sealed, nobody can change it any more, and its
 * bytes count against its client's limit already. What a fatbin's entry unpacks to is
 * there only between image_unpack and image_pack.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_IMAGE_H
#define GPUSHARE_SERVER_WORKER_CODE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

enum image_kind { IMAGE_NONE, IMAGE_PTX, IMAGE_CUBIN };

struct image {
    enum image_kind kind;
    const uint8_t *bytes; /* NULL: packed */
    size_t count;
    void *file; /* the mapping */
    size_t file_bytes;
    void *unpacked; /* malloc'ed; NULL if bytes lie in the mapping */
};

/* Maps count bytes from the start of fd, which must be sealed and stays the caller's. 0 or an error
 * number with a sentence. */
uint32_t image_open(struct image *image, int fd, uint64_t count, char *why, size_t why_size);

/* Says what it is. compute: 90 for compute capability 9.0; most: bytes of memory that unpacking may
 * take. Likewise. */
uint32_t image_unpack(struct image *image, uint32_t compute, size_t most, char *why,
                      size_t why_size);
/* Bytes of memory that it takes unpacked. */
size_t image_memory(const struct image *image);
/* Frees them; the kind stays known. */
void image_pack(struct image *image);
void image_release(struct image *image);

#endif
