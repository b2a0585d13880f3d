/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/range/allocation.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

void allocation_init(struct allocations *table)
{
    memset(table, 0, sizeof *table);
    pthread_rwlock_init(&table->lock, NULL);
}

void allocation_destroy(struct allocations *table, bool here)
{
    free(table->rows);
    table->rows = NULL;
    table->count = table->room = 0;
    if (here)
        pthread_rwlock_destroy(&table->lock);
}

/* The number of rows that begin at or before address. */
static size_t count_rows_before(const struct allocations *table, uint64_t address)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool row_contains(const struct allocation *row, uint64_t address)
{
    return address - row->address < row->bytes;
}

static int insert_row(struct allocations *table, size_t at, const struct allocation *allocation)
{
    if (array_reserve(table->rows, table->room, table->count + 1) < 0)
        return -ENOMEM;
    memmove(table->rows + at + 1, table->rows + at, (table->count - at) * sizeof *table->rows);
    static atomic_uint_fast64_t last_id;
    table->rows[at] = *allocation;
    table->rows[at].id = atomic_fetch_add(&last_id, 1) + 1;
    table->count++;
    return 0;
}

static void erase_row(struct allocations *table, size_t at)
{
    table->count--;
    memmove(table->rows + at, table->rows + at + 1, (table->count - at) * sizeof *table->rows);
}

int allocation_add(struct allocations *table, const struct allocation *allocation)
{
    int result = 0;
    pthread_rwlock_wrlock(&table->lock);
    size_t at = count_rows_before(table, allocation->address);
    bool overlaps = (at > 0 && row_contains(&table->rows[at - 1], allocation->address)) ||
                    (at < table->count && row_contains(allocation, table->rows[at].address));
    if (!overlaps)
        result = insert_row(table, at, allocation);
    pthread_rwlock_unlock(&table->lock);
    return result;
}

bool allocation_take(struct allocations *table, uint64_t address, enum allocation_kind kind,
                     struct allocation *taken)
{
    pthread_rwlock_wrlock(&table->lock);
    size_t at = count_rows_before(table, address);
    bool found =
        at > 0 && table->rows[at - 1].address == address && table->rows[at - 1].kind == kind;
    if (found) {
        *taken = table->rows[at - 1];
        erase_row(table, at - 1);
    }
    pthread_rwlock_unlock(&table->lock);
    return found;
}

void allocation_disown(struct allocations *table, const void *owner)
{
    pthread_rwlock_wrlock(&table->lock);
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].owner != owner)
            table->rows[kept++] = table->rows[i];
    table->count = kept;
    pthread_rwlock_unlock(&table->lock);
}

bool allocation_find(struct allocations *table, uint64_t address, struct allocation *found)
{
    pthread_rwlock_rdlock(&table->lock);
    size_t at = count_rows_before(table, address);
    bool there = at > 0 && row_contains(&table->rows[at - 1], address);
    if (there)
        *found = table->rows[at - 1];
    pthread_rwlock_unlock(&table->lock);
    return there;
}
