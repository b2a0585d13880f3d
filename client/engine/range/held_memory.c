/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/range/held_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

void held_memory_init(struct held_memory *memory)
{
    memset(memory, 0, sizeof *memory);
    list_init(&memory->holds);
    pthread_mutex_init(&memory->lock, NULL);
    pthread_cond_init(&memory->ended, NULL);
}

void held_memory_destroy(struct held_memory *memory, bool here)
{
    free(memory->kept);
    memory->kept = NULL;
    memory->count = memory->room = 0;
    if (!here)
        return;
    pthread_cond_destroy(&memory->ended);
    pthread_mutex_destroy(&memory->lock);
}

/* The table is read under the lock: an allocation that is taken out of it after that finds the
 * hold. */
int held_memory_add(struct held_memory *memory, struct memory_hold *hold, uint64_t address,
                    struct allocations *table, struct allocation *found)
{
    int result = 0;
    pthread_mutex_lock(&memory->lock);
    if (!allocation_find(table, address, found))
        result = -ENOENT;
    else if (array_reserve(memory->kept, memory->room, memory->held + 1) < 0)
        result = -ENOMEM;
    if (!result) {
        hold->address = address;
        hold->owner = found->owner;
        list_append(&memory->holds, &hold->link);
        memory->held++;
    }
    pthread_mutex_unlock(&memory->lock);
    return result;
}

static bool is_held(const struct held_memory *memory, const struct allocation *allocation)
{
    const struct memory_hold *hold;
    LIST_FOR_EACH (hold, &memory->holds, link)
        if (hold->address - allocation->address < allocation->bytes)
            return true;
    return false;
}

/* The allocation that lay around the hold is the one of those kept that has its address: nobody
 * else is given these addresses before it is freed. */
static bool take_kept(struct held_memory *memory, uint64_t address, struct allocation *freed)
{
    for (size_t i = 0; i < memory->count; i++) {
        if (address - memory->kept[i].address >= memory->kept[i].bytes)
            continue;
        if (is_held(memory, &memory->kept[i]))
            return false;
        *freed = memory->kept[i];
        memory->kept[i] = memory->kept[--memory->count];
        return true;
    }
    return false;
}

bool held_memory_end(struct held_memory *memory, struct memory_hold *hold, struct allocation *freed)
{
    pthread_mutex_lock(&memory->lock);
    list_remove(&hold->link);
    memory->held--;
    bool last = take_kept(memory, hold->address, freed);
    pthread_cond_broadcast(&memory->ended);
    pthread_mutex_unlock(&memory->lock);
    return last;
}

bool held_memory_keep(struct held_memory *memory, const struct allocation *freed)
{
    pthread_mutex_lock(&memory->lock);
    bool held = is_held(memory, freed);
    if (held)
        memory->kept[memory->count++] = *freed;
    pthread_mutex_unlock(&memory->lock);
    return held;
}

static bool has_owner(const struct held_memory *memory, const void *owner)
{
    const struct memory_hold *hold;
    LIST_FOR_EACH (hold, &memory->holds, link)
        if (hold->owner == owner)
            return true;
    return false;
}

void held_memory_await(struct held_memory *memory, const void *owner)
{
    pthread_mutex_lock(&memory->lock);
    while (has_owner(memory, owner))
        pthread_cond_wait(&memory->ended, &memory->lock);
    pthread_mutex_unlock(&memory->lock);
}
