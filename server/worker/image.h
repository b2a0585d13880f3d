/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: what a client gave as code: PTX text, a cubin, or a fatbin of which the
 * fitting entry is taken. A private copy; nobody can change it any more.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_H
#define GPUSHARE_SERVER_WORKER_IMAGE_H

#include <stddef.h>
#include <stdint.h>

enum image_kind { IMAGE_NONE, IMAGE_PTX, IMAGE_CUBIN };

struct image {
    enum image_kind kind;
    uint8_t *bytes; /* count of them, and a NUL behind */
    size_t count;
};

/*
 * Reads count bytes from the start of fd (which stays the caller's). compute: 90
 * for compute capability 9.0. 0 or an error number with a sentence.
 */
uint32_t image_read(struct image *image, int fd, uint64_t count, uint32_t compute, char *why,
                    size_t why_size);
void image_release(struct image *image);

#endif
