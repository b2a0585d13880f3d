/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * allocation: the address ranges of one connection: device memory, shared host buffers and module
 * variables. A copy looks here to tell device memory from ordinary memory, and to refuse at once a
 * range that the server would refuse later.
 *
 * Variables lie where the driver put them, in the device window or elsewhere. A variable inside
 * other memory of this table is not listed. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_ALLOCATION_H
#define GPUSHARE_CLIENT_ENGINE_ALLOCATION_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum allocation_kind { ALLOCATION_DEVICE, ALLOCATION_HOST, ALLOCATION_VARIABLE };

struct allocation {
    uint64_t address, bytes; /* whole allocation units */
    uint64_t asked;          /* bytes that were asked for, and may be used */
    enum allocation_kind kind;
    const void *owner; /* a variable's module, else NULL */
};

struct allocations {
    pthread_rwlock_t lock;
    struct allocation *rows; /* by address; they don't overlap */
    size_t count, room;
};

void allocation_init(struct allocations *table);

/* Frees the table. here: false in a forked child, where the lock is left alone. */
void allocation_destroy(struct allocations *table, bool here);

/* Adds one; one that overlaps another is left out. Returns 0 or -ENOMEM. */
int allocation_add(struct allocations *table, const struct allocation *allocation);

/* Removes the allocation of this kind that begins at address; *taken says what it was. False if
 * there is none. */
bool allocation_take(struct allocations *table, uint64_t address, enum allocation_kind kind,
                     struct allocation *taken);

/* Removes all of an owner. */
void allocation_disown(struct allocations *table, const void *owner);

/* The allocation that holds address, if any. */
bool allocation_find(struct allocations *table, uint64_t address, struct allocation *found);

#endif
