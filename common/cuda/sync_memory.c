/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/sync_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/list.h"

struct entry {
    struct list_link link;
    struct sync_memory memory;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list entries = LIST_INIT(entries); /* under the lock */
static atomic_uint count;

/* The lock is held. */
static struct entry *find_overlap(uint64_t address, uint64_t bytes)
{
    struct entry *entry;
    LIST_FOR_EACH (entry, &entries, link)
        if (address < entry->memory.address + entry->memory.bytes &&
            entry->memory.address < address + bytes)
            break;
    return entry;
}

/* The lock is held. */
static void drop(struct entry *entry)
{
    list_remove(&entry->link);
    free(entry);
    atomic_fetch_sub(&count, 1);
}

/* Entries that overlap the allocation are of earlier ones, which are gone. */
int sync_memory_set(const struct sync_memory *memory, bool on)
{
    struct entry *entry, *made = on ? calloc(1, sizeof *made) : NULL;
    if (on && !made)
        return -ENOMEM;
    pthread_mutex_lock(&lock);
    while ((entry = find_overlap(memory->address, memory->bytes)))
        drop(entry);
    if (made) {
        made->memory = *memory;
        list_append(&entries, &made->link);
        atomic_fetch_add(&count, 1);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

bool sync_memory_is_set(const struct sync_memory *memory)
{
    if (!atomic_load(&count))
        return false;
    pthread_mutex_lock(&lock);
    const struct entry *entry = find_overlap(memory->address, memory->bytes);
    bool set = entry && entry->memory.id == memory->id;
    pthread_mutex_unlock(&lock);
    return set;
}

bool sync_memory_waits(uint64_t address)
{
    if (!atomic_load_explicit(&count, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&lock);
    bool found = find_overlap(address, 1) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

void sync_memory_forget(uint64_t address)
{
    if (!atomic_load(&count))
        return;
    pthread_mutex_lock(&lock);
    struct entry *entry = find_overlap(address, 1);
    if (entry && entry->memory.address == address)
        drop(entry);
    pthread_mutex_unlock(&lock);
}
