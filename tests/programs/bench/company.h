/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * company: the unkind neighbours (tests/support/scene.h) that a row is measured beside once more. A
 * number that is reached only where nobody else is there is not reached.
 *
 * The row table says which kinds leave a row its meaning. Kernels that trap are in none: they take
 * the worker, and all that is measured with it.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_COMPANY_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_COMPANY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/scene.h"
#include "tests/support/server.h"

/* Draws one or two of these kinds. The same seed draws the same. */
unsigned company_draw(unsigned kinds, uint64_t seed);

/* Writes their names, "pauses, visits", into a text of this size. */
void company_names(unsigned kinds, char *text, size_t size);

/* Servers that are started from now on get neighbours of these kinds; 0: none. Their choices
 * follow bench_seed. */
void company_expect(unsigned kinds);

bool company_expected(void);

/* Arguments for server_start that the neighbours need, ending with NULL. */
const char *const *company_server_args(void);

/* Starts the neighbours of a server that has no clients yet, and ends them. Both do nothing if none
 * are expected. A neighbour that could not go on makes company_end end the process. */
void company_begin(const struct server *server);
void company_end(const struct server *server);

#endif
