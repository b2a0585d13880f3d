/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * held_memory: memory of a connection that this process itself will read later, at a moment that
 * nobody knows yet.
 *
 * A program may free such memory meanwhile. To the program it is gone then. The server is told only
 * when the last hold on it ends: nobody else has the memory before that, and it stays charged.
 *
 * Any thread. The caller of held_memory_add may take the lock of the table of allocations while it
 * has this one.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_RANGE_HELD_MEMORY_H
#define GPUSHARE_CLIENT_ENGINE_RANGE_HELD_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/engine/range/allocation.h"
#include "common/list.h"

/* One hold, on bytes within one allocation. */
struct memory_hold {
    struct list_link link;
    uint64_t address;
    const void *owner; /* the module, of a variable's memory; else NULL */
};

struct held_memory {
    pthread_mutex_t lock;
    pthread_cond_t ended;    /* a hold has */
    struct list holds;       /* struct memory_hold */
    struct allocation *kept; /* freed by the program, each with a hold on it; malloc'ed */
    size_t count, room;      /* room for one allocation for each hold */
    size_t held;
};

void held_memory_init(struct held_memory *memory);

/* here: false in a forked child, as in allocation_destroy. */
void held_memory_destroy(struct held_memory *memory, bool here);

/* Adds a hold on the bytes at `address`, which lie in one allocation of the table or in none.
 * *found becomes that allocation. Returns 0; -ENOENT if there is none, or -ENOMEM: nothing is held
 * then. */
int held_memory_add(struct held_memory *memory, struct memory_hold *hold, uint64_t address,
                    struct allocations *table, struct allocation *found);

/* Ends a hold. Returns whether it was the last one on memory that the program has freed: *freed is
 * that memory then, and the caller frees it. */
bool held_memory_end(struct held_memory *memory, struct memory_hold *hold,
                     struct allocation *freed);

/* Of an allocation that was taken out of the table: whether a hold keeps it. Then it is freed by
 * whoever ends the last hold. */
bool held_memory_keep(struct held_memory *memory, const struct allocation *freed);

/* Waits until no hold is on a variable of the module, none of which is in the table any more. */
void held_memory_await(struct held_memory *memory, const void *owner);

#endif
