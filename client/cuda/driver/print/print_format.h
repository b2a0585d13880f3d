/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * print_format: writes what a kernel printed, by its format, as CUDA's printf does. It knows the
 * conversions d i u o x X c s p e E f F g G a A, the flags, width, precision and sizes of C, and *.
 * Other conversions are written as they stand, and take no argument.
 *
 * The kernel may have written over a record. So whatever stands in it, nothing beyond it is read.
 * Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_PRINT_PRINT_FORMAT_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_PRINT_PRINT_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The parts of a record. */
struct print_record {
    const uint8_t *arguments; /* as they lay in the kernel's memory: at their natural alignment */
    size_t argument_bytes;
    const char *text; /* the format, then the text of each %s, each with a zero byte behind it */
    size_t text_bytes;
};

/* A width and a precision are at most PRINT_WIDTH_MAX. */
enum { PRINT_WIDTH_MAX = 4096 };

/* Writes the record to a stream, whose errors are left to its owner. */
void print_format(const struct print_record *record, FILE *to);

#endif
