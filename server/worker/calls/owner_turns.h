/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * owner_turns: which owner was served longest ago, for the queues of a worker.
 *
 * An owner is a user, so a user with ten connections has one turn. The table has places for 128
 * owners. Where more are about than the places of a set, the one that was served longest ago is
 * forgotten: it then counts as never served, and comes a little early. No two owners ever share a
 * turn.
 */
#ifndef GPUSHARE_SERVER_WORKER_CALLS_OWNER_TURNS_H
#define GPUSHARE_SERVER_WORKER_CALLS_OWNER_TURNS_H

#include <stdint.h>

enum { OWNER_TURNS_SETS = 16, OWNER_TURNS_WAYS = 8 };

/* All zero: nobody was served. A thread that has the queue's lock may use it. */
struct owner_turns {
    uint64_t count; /* turns that were given */
    struct owner_turn {
        uint32_t owner;
        uint64_t turn; /* 0: the place is free */
    } sets[OWNER_TURNS_SETS][OWNER_TURNS_WAYS];
};

/* Of two owners the one with the lower number comes first; 0: it was never served. */
uint64_t owner_turns_last(const struct owner_turns *turns, uint32_t owner);

/* The owner is served now. */
void owner_turns_take(struct owner_turns *turns, uint32_t owner);

#endif
