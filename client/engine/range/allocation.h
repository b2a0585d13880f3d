/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * allocation: the address ranges of one connection: device memory, shared host buffers and module
 * variables. A copy looks here to tell device memory from ordinary memory, and to refuse at once a
 * range that the server would refuse later.
 *
 * A variable lies where the driver put it, in the device window or elsewhere. A variable that lies
 * inside other memory of this table is not listed. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_RANGE_ALLOCATION_H
#define GPUSHARE_CLIENT_ENGINE_RANGE_ALLOCATION_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A managed allocation is a shared host buffer that a front gives out as memory of both sides. */
enum allocation_kind {
    ALLOCATION_DEVICE,
    ALLOCATION_HOST,
    ALLOCATION_MANAGED,
    ALLOCATION_VARIABLE
};

struct allocation {
    uint64_t address, bytes; /* the range, in whole allocation units */
    uint64_t asked;          /* the bytes that were asked for; a copy may use these */
    enum allocation_kind kind;
    const void *owner; /* a variable's module, else NULL */
    uint64_t id;       /* unique in the process; allocation_add gives it */
};

struct allocations {
    pthread_rwlock_t lock;
    struct allocation *rows; /* sorted by address, without overlaps; malloc'ed */
    size_t count, room;
};

void allocation_init(struct allocations *table);

/* Frees the table. here: false in a forked child, where a thread that does not exist there may
 * hold the lock; then the lock is left alone. */
void allocation_destroy(struct allocations *table, bool here);

/* Adds an allocation; an allocation that overlaps a listed one is left out. Returns 0 or
 * -ENOMEM. */
int allocation_add(struct allocations *table, const struct allocation *allocation);

/* Removes the allocation of this kind that begins at `address`, and stores it in *taken. Returns
 * false, and writes nothing, if there is none. */
bool allocation_take(struct allocations *table, uint64_t address, enum allocation_kind kind,
                     struct allocation *taken);

/* Removes all variables of a module. */
void allocation_disown(struct allocations *table, const void *owner);

/* Finds the allocation that holds `address`. Returns false, and writes nothing, if there is
 * none. */
bool allocation_find(struct allocations *table, uint64_t address, struct allocation *found);

#endif
