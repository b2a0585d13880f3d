/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/owner_turns.h"

#include <stddef.h>

static const struct owner_turn *find_turn(const struct owner_turns *turns, uint32_t owner)
{
    const struct owner_turn *set = turns->sets[owner % OWNER_TURNS_SETS];
    for (size_t i = 0; i < OWNER_TURNS_WAYS; i++)
        if (set[i].turn && set[i].owner == owner)
            return &set[i];
    return NULL;
}

uint64_t owner_turns_last(const struct owner_turns *turns, uint32_t owner)
{
    const struct owner_turn *found = find_turn(turns, owner);
    return found ? found->turn : 0;
}

void owner_turns_take(struct owner_turns *turns, uint32_t owner)
{
    struct owner_turn *set = turns->sets[owner % OWNER_TURNS_SETS], *place = set;
    for (size_t i = 0; i < OWNER_TURNS_WAYS; i++) {
        if (set[i].turn && set[i].owner == owner) {
            place = &set[i];
            break;
        }
        /* Of the others a free place, or else the oldest turn, is the one to give up. */
        if (set[i].turn < place->turn)
            place = &set[i];
    }
    *place = (struct owner_turn){.owner = owner, .turn = ++turns->count};
}
