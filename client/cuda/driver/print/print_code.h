/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * print_code: puts a function of ours into PTX in the place of vprintf, which is the driver's own:
 * nvcc makes printf a call of it. The driver's prints to the process that has the context, and that
 * is the server's worker. Ours writes into a ring (print_ring.h) in memory of the program's own.
 *
 * The text that comes out is the same for every process, so its code is compiled once. Each line
 * stays the line it was. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_PRINT_PRINT_CODE_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_PRINT_PRINT_CODE_H

#include <stddef.h>
#include <stdint.h>

struct print_code {
    char *text; /* PTX, with a zero byte behind it; malloc'ed. NULL: there is no such call */
    size_t bytes;
    char ring[40]; /* the name of the variable that takes the ring's address, 8 bytes */
};

/* Looks at PTX of `length` bytes. Returns 0 or -ENOMEM. The caller frees code->text. */
int print_code_make(const char *text, size_t length, struct print_code *code);

#endif
