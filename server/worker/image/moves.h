/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * moves: which variables of a text move into the client's memory, and why the others stay. A
 * variable stays because of its declaration, because a debugging section names it, or because it is
 * joined with one that stays. Part of rewrite; one thread at a time.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_MOVES_H
#define GPUSHARE_SERVER_WORKER_IMAGE_MOVES_H

#include <stdbool.h>

struct rewrite;

/* Decides for each variable that was collected, and notes why it stays: the format of a sentence
 * that takes the variable's name. False: there is no memory; the rewriting says whether its own
 * limit is why. */
bool moves_decide(struct rewrite *rewrite);

#endif
