/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * managed_code: moves the managed variables (__managed__) of a PTX text out of it, into memory that
 * the host and the device reach at one address.
 *
 * Their declarations go, and their uses add a number to a variable of ours, which holds the address
 * of that memory. So the text is the same for every client, and the server compiles it once. Every
 * line stays the line that it was. No global state; any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_MANAGED_MANAGED_CODE_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_MANAGED_MANAGED_CODE_H

#include <stddef.h>
#include <stdint.h>

struct managed_variable {
    char *name;
    uint64_t offset, bytes; /* in the memory */
};

struct managed_code {
    char *text; /* NULL: nothing moves, and the module is to be loaded as it is */
    size_t length;
    char base[64];    /* the variable of 8 bytes that holds the memory's address */
    uint8_t *initial; /* contents of the memory */
    uint64_t initial_bytes;
    struct managed_variable *variables;
    uint32_t count;
};

/*
 * Reads PTX of `length` bytes. Returns 0, or -ENOMEM. managed_code_free frees what *code has after
 * success.
 *
 * Nothing moves in a text that the reader does not understand, and in one whose managed variables
 * hold addresses or are declared elsewhere: these stay the server's to judge.
 */
int managed_code_make(const char *text, size_t length, struct managed_code *code);
void managed_code_free(struct managed_code *code);

#endif
