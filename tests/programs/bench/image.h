/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: modules of about 1 MB, no two of which are the same, so that no cache has one.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_IMAGE_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_IMAGE_H

#include <stdint.h>

/* PTX of IMAGE_KERNELS kernels and a table of constants. The caller frees it. */
char *image_text(uint64_t number);

enum { IMAGE_BYTES = 1 << 20, IMAGE_KERNELS = 64 };

#endif
