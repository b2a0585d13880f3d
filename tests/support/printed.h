/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* printed: a file in memory that a test's functions print to. One in a test program. */
#ifndef GPUSHARE_TESTS_SUPPORT_PRINTED_H
#define GPUSHARE_TESTS_SUPPORT_PRINTED_H

#include <stdio.h>
#include <stdlib.h>

static struct {
    FILE *out;
    char *text;
    size_t bytes;
} printed;

/* cmocka's set-up and tear-down. */
static inline int printed_open(void **state)
{
    (void)state;
    printed.out = open_memstream(&printed.text, &printed.bytes);
    return !printed.out;
}

static inline int printed_close(void **state)
{
    (void)state;
    fclose(printed.out);
    free(printed.text);
    return 0;
}

/* All that was printed since the set-up. */
static inline const char *printed_text(void)
{
    fflush(printed.out);
    return printed.text;
}

#endif
