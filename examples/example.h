/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Helpers of the examples, which end on the first error and carry their kernels' PTX inside the
 * program. A program of your own needs neither macro; gpushare_module_load_file() loads kernels
 * from a file.
 */
#ifndef GPUSHARE_EXAMPLES_EXAMPLE_H
#define GPUSHARE_EXAMPLES_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>

#include "client/gpushare.h"

/* Makes a call. If it fails, says which call and why, and ends the program with status 1. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        gpushare_error check_error = (call);                                                       \
        if (check_error != GPUSHARE_SUCCESS) {                                                     \
            fprintf(stderr, "%s: %s: %s: %s\n", program_invocation_short_name, #call,              \
                    gpushare_error_name(check_error), gpushare_error_text());                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

extern char *program_invocation_short_name;

/* Includes a file's bytes, and a NUL after them, as `const char symbol[]`. */
#define INCLUDE_PTX(symbol, path)                                                                  \
    __asm__(".section .rodata\n.balign 16\n" #symbol ":\n.incbin \"" path                          \
            "\"\n.byte 0\n.previous\n");                                                           \
    extern const char symbol[]

#endif
