/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * neighbour: an honest client in a process of its own. It computes and checks without a pause,
 * while a test beside it misbehaves.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_NEIGHBOUR_H
#define GPUSHARE_TESTS_SUPPORT_NEIGHBOUR_H

#include "tests/support/server.h"

struct neighbour;

/* Starts a neighbour and waits for its first verified round. neighbour_stop ends it. */
struct neighbour *neighbour_start(const struct server *server);

/* Returns the number of rounds verified so far. */
unsigned long neighbour_rounds(const struct neighbour *neighbour);

/*
 * Waits for at least one more verified round, then ends and frees the neighbour. Returns 0 if all
 * its results were right and all its calls succeeded; otherwise it prints the failures.
 */
int neighbour_stop(struct neighbour *neighbour);

#endif
