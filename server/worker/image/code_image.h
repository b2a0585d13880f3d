/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * code_image: a client's code as it was given: PTX text, a cubin, or a fatbin of which the entry
 * that fits the device is taken.
 *
 * The file is mapped, not copied. It is sealed, so its bytes can't change any more, and they count
 * against the client's limit already. The unpacked entry of a fatbin is in memory only between
 * code_image_unpack and code_image_pack.
 *
 * One thread at a time.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_CODE_IMAGE_H
#define GPUSHARE_SERVER_WORKER_IMAGE_CODE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum code_image_kind { CODE_IMAGE_NONE, CODE_IMAGE_PTX, CODE_IMAGE_CUBIN };

struct code_image {
    enum code_image_kind kind;
    const uint8_t *bytes; /* the code; NULL: packed */
    size_t count;
    void *file; /* the mapping; NULL: none */
    size_t file_bytes;
    void *unpacked; /* malloc'ed; NULL if bytes points into the mapping */
};

/* Maps `count` bytes from the start of fd, which must be sealed and stays the caller's. Returns 0,
 * or an error number with a sentence in why. */
uint32_t code_image_open(struct code_image *image, int fd, uint64_t count, struct error *why);

/* Finds out which kind of code the image is, and unpacks a fatbin's entry. compute: 90 for compute
 * capability 9.0. max: bytes of memory that unpacking may take. Returns 0, or an error number with
 * a sentence in why; the image is released then. */
uint32_t code_image_unpack(struct code_image *image, uint32_t compute, size_t max,
                           struct error *why);
/* Bytes of memory that the unpacked entry takes; 0 if nothing was unpacked. */
size_t code_image_memory(const struct code_image *image);
/* Frees the unpacked entry; the kind stays known. code_image_release frees the mapping too. Both
 * are idempotent. */
void code_image_pack(struct code_image *image);
void code_image_release(struct code_image *image);

#endif
