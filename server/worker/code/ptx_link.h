/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ptx_link: PTX compiled by the driver's linker, in the calling thread, which needs a current
 * context. It may take as long and as much memory as the text was made to take, so a worker does
 * this in a process apart (compiler.h) where it can. One thread at a time.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_PTX_LINK_H
#define GPUSHARE_SERVER_WORKER_CODE_PTX_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/cuda/cuda_driver.h"

enum { PTX_LINK_LOG = 4096 /* bytes; only the first words go into a sentence */ };

struct ptx_link {
    const struct cuda_driver *cuda;
    cuda_link handle; /* NULL: closed */
    cuda_jit_option options[2];
    void *values[2]; /* the driver keeps the array's address */
    char log[PTX_LINK_LOG];
};

/* Whether the driver has a linker. */
bool ptx_link_offered(const struct cuda_driver *cuda);

/* The driver must have a linker, and *link stays where it is until ptx_link_close, whatever this
 * returns: the driver's result. */
cuda_result ptx_link_open(struct ptx_link *link, const struct cuda_driver *cuda);

/* Compiles text, which ends with NUL. On success *code is `bytes` bytes that live until
 * ptx_link_close. Else link->log may say why, as the compiler writes it. Once only. */
cuda_result ptx_link_text(struct ptx_link *link, const char *text, const void **code,
                          size_t *bytes);
void ptx_link_close(struct ptx_link *link); /* idempotent */

#endif
