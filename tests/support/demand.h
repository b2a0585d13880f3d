/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* demand: what a program of its own, which is no cmocka test, ends for: it names the place and
 * exits with 1. */
#ifndef GPUSHARE_TESTS_SUPPORT_DEMAND_H
#define GPUSHARE_TESTS_SUPPORT_DEMAND_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
