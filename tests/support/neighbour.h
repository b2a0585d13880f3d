/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * neighbour: an honest client in a process of its own that computes and checks
 * without a pause, while a test beside it misbehaves.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_NEIGHBOUR_H
#define GPUSHARE_TESTS_SUPPORT_NEIGHBOUR_H

#include "tests/support/server.h"

struct neighbour;

/* Starts it and waits for its first verified round. */
struct neighbour *neighbour_start(const struct server *server);

/* Rounds verified so far. */
unsigned long neighbour_rounds(const struct neighbour *neighbour);

/*
 * Waits for at least one more verified round, ends it, frees. Returns 0 if every
 * result of its life was right and every call succeeded; prints what was not.
 */
int neighbour_stop(struct neighbour *neighbour);

#endif
