/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * share: which of the device's atoms (groups of multiprocessors) each client has now.
 *
 * A request is atoms of the client's own: nobody else is on them while it has work.
 * While it has none they are lent, and taken back the moment it has some. A limit is
 * a cap: what a client has beyond its own atoms may overlap with others and goes to
 * the least loaded.
 *
 *   8 atoms; a: request 4, limit 4; b: request 2, limit 8; c: limit 4
 *     both a and b have work      a a a a | b b | . .    b: also 6 7;   c: 6 7
 *     a has none                  . . . . | b b | . .    b: all;        c: 0 1 2 3
 *     a has work again            moves: b to {4 5 6 7}, c to {6 7}, then a runs on {0 1 2 3}
 *
 * Requests must not come to more than the atoms there are. A client without a request
 * for which no atom is free has the empty set: it is held until there is one.
 *
 * Pure; no clock, no memory but the caller's; one thread at a time.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SHARE_H
#define GPUSHARE_SERVER_SCHEDULER_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHARE_ATOMS_MAX = 256, SHARE_WHY = 320, SHARE_OVERCOMMITTED = 1 };

struct share_set {
    uint64_t bits[SHARE_ATOMS_MAX / 64];
};

static inline bool share_set_has(const struct share_set *set, uint32_t atom)
{
    return set->bits[atom / 64] >> (atom % 64) & 1;
}

void share_set_add(struct share_set *set, uint32_t atom);
void share_set_all(struct share_set *set); /* SHARE_ATOMS_MAX atoms */
bool share_set_empty(const struct share_set *set);
bool share_set_overlap(const struct share_set *a, const struct share_set *b);
void share_set_join(struct share_set *set, const struct share_set *other);
uint32_t share_set_count(const struct share_set *set);

#endif
