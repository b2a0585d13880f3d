/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/cache/code_store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/ipc/shared_word.h"
#include "common/util.h"

/* "GSCODE02". A change of the layout, or of what `check` is of, changes the number. */
#define MAGIC UINT64_C(0x323045444f435347)
enum { HALVES = CODE_STORE_HALVES, ALIGN = 64 };

struct header {
    _Atomic uint64_t magic; /* last of all: the keys are made */
    struct hash_key keys[2];
    _Atomic uint32_t current;      /* the half to which code is added */
    _Atomic uint64_t used[HALVES]; /* bytes of whole entries */
};

/* Its code follows. check: of the name too, since another worker may put another entry in its place
 * between two looks. */
struct entry {
    struct code_name name;
    uint64_t bytes, check;
};

/* Where an entry is, for the index. */
struct place {
    struct code_link link;
    uint32_t half;
    uint64_t at; /* bytes from the half's begin */
};

static struct header *header_of(const struct code_store *store)
{
    return store->memory.base;
}

static uint64_t half_bytes(const struct code_store *store)
{
    return (store->memory.bytes - ALIGN * (sizeof(struct header) / ALIGN + 1)) / HALVES / ALIGN *
           ALIGN;
}

static uint8_t *half_at(const struct code_store *store, uint32_t half)
{
    return (uint8_t *)store->memory.base + ALIGN * (sizeof(struct header) / ALIGN + 1) +
           half * half_bytes(store);
}

static uint64_t entry_bytes(uint64_t code)
{
    return (sizeof(struct entry) + code + ALIGN - 1) / ALIGN * ALIGN;
}

int code_store_open(struct code_store *store, int fd)
{
    struct stat file;
    *store = (struct code_store){.memory = SHM_NONE};
    code_index_open(&store->index);
    if (fd < 0)
        return 0;
    int result = fstat(fd, &file) < 0 ? -errno : 0;
    if (result == 0 && file.st_size < (off_t)(sizeof(struct header) + 4 * ALIGN))
        result = -EINVAL;
    if (result == 0)
        result = shm_adopt(&store->memory, fd, (size_t)file.st_size, true);
    if (result < 0) {
        close(fd);
        return result;
    }
    struct header *header = header_of(store);
    if (atomic_load_explicit(&header->magic, memory_order_acquire) == MAGIC)
        return 0;
    for (unsigned i = 0; result == 0 && i < 2; i++)
        result = hash_key_make(&header->keys[i]);
    if (result < 0)
        code_store_close(store);
    else
        atomic_store_explicit(&header->magic, MAGIC, memory_order_release);
    return result;
}

static void forget_places(struct code_store *store)
{
    for (size_t i = 0; i < store->index.room; i++)
        for (struct code_link *link = code_index_buckets(&store->index)[i], *next; link;
             link = next) {
            next = link->next;
            free(container_of(link, struct place, link));
        }
    code_index_close(&store->index);
    memset(store->seen, 0, sizeof store->seen);
}

void code_store_close(struct code_store *store)
{
    if (!store->memory.base)
        return;
    forget_places(store);
    shm_release(&store->memory);
    store->memory = SHM_NONE;
}

const struct hash_key *code_store_keys(const struct code_store *store)
{
    return store->memory.base ? header_of(store)->keys : NULL;
}

static uint64_t check_of(const struct code_store *store, const struct code_name *name,
                         const void *code, size_t bytes)
{
    const struct hash_key *key = &header_of(store)->keys[0];
    uint64_t hash = hash_add(key, hash_add(key, HASH_BEGIN, bytes), name->length);
    hash = hash_add(key, hash_add(key, hash, name->hashes[0]), name->hashes[1]);
    return hash_end(key, hash_add_bytes(key, hash, code, bytes));
}

static uint64_t used_of(const struct code_store *store, uint32_t half)
{
    uint64_t used = atomic_load_explicit(&header_of(store)->used[half], memory_order_acquire);
    return used < half_bytes(store) ? used : half_bytes(store);
}

static struct entry *entry_at(const struct code_store *store, uint32_t half, uint64_t at)
{
    return (struct entry *)(half_at(store, half) + at);
}

/* Copies the entry at a place, since a worker may write there meanwhile. Returns false if it does
 * not end within the half. */
static bool entry_read(const struct code_store *store, uint32_t half, uint64_t at,
                       struct entry *copy)
{
    uint64_t used = used_of(store, half), left = at < used ? used - at : 0;
    const struct entry *entry = entry_at(store, half, at);
    if (left < sizeof *entry)
        return false;
    *copy = (struct entry){.name = {.length = shared_word_hint(&entry->name.length),
                                    .hashes = {shared_word_hint(&entry->name.hashes[0]),
                                               shared_word_hint(&entry->name.hashes[1])}},
                           .bytes = shared_word_hint(&entry->bytes),
                           .check = shared_word_hint(&entry->check)};
    return copy->bytes <= left && entry_bytes(copy->bytes) <= left;
}

/* Takes note of the entries that were added since. Another worker may have added them, or have
 * emptied a half. */
static void note_places(struct code_store *store)
{
    for (uint32_t half = 0; half < HALVES; half++)
        if (used_of(store, half) < store->seen[half])
            forget_places(store);
    for (uint32_t half = 0; half < HALVES; half++) {
        struct entry entry;
        while (entry_read(store, half, store->seen[half], &entry)) {
            struct place *place = malloc(sizeof *place);
            if (!place)
                return;
            *place = (struct place){.link.name = entry.name, .half = half, .at = store->seen[half]};
            code_index_add(&store->index, &place->link);
            store->seen[half] += entry_bytes(entry.bytes);
        }
    }
}

/* A half that was emptied and has been filled further since looks as if it had only grown. Then a
 * place has an entry of another name. */
static const struct place *find_place(struct code_store *store, const struct code_name *name,
                                      struct entry *entry)
{
    if (!store->memory.base)
        return NULL;
    for (unsigned tries = 0; tries < 2; tries++) {
        note_places(store);
        const struct code_link *link = code_index_find(&store->index, name);
        if (!link)
            return NULL;
        const struct place *place = container_of(link, struct place, link);
        if (entry_read(store, place->half, place->at, entry) && code_name_equal(&entry->name, name))
            return place;
        forget_places(store);
    }
    return NULL;
}

void *code_store_copy(struct code_store *store, const struct code_name *name, size_t *bytes)
{
    struct entry entry;
    const struct place *place = find_place(store, name, &entry);
    if (!place)
        return NULL;
    void *code = malloc(entry.bytes ? entry.bytes : 1);
    if (!code)
        return NULL;
    memcpy(code, entry_at(store, place->half, place->at) + 1, entry.bytes);
    if (entry.check != check_of(store, name, code, entry.bytes)) {
        free(code);
        return NULL;
    }
    *bytes = entry.bytes;
    return code;
}

/* The half that has room for so many bytes. One that is emptied for it is empty before code is
 * added to it. */
static uint32_t make_room(struct code_store *store, uint64_t bytes)
{
    struct header *header = header_of(store);
    uint32_t current = atomic_load(&header->current) % HALVES;
    if (atomic_load(&header->used[current]) + bytes <= half_bytes(store))
        return current;
    current = (current + 1) % HALVES;
    atomic_store(&header->used[current], 0);
    atomic_store(&header->current, current);
    forget_places(store);
    return current;
}

void code_store_add(struct code_store *store, const struct code_name *name, const void *code,
                    size_t bytes)
{
    struct entry there;
    if (!store->memory.base || bytes > half_bytes(store) ||
        entry_bytes(bytes) > half_bytes(store) || find_place(store, name, &there))
        return;
    uint32_t half = make_room(store, entry_bytes(bytes));
    _Atomic uint64_t *used = &header_of(store)->used[half];
    struct entry *entry = entry_at(store, half, atomic_load(used));
    *entry =
        (struct entry){.name = *name, .bytes = bytes, .check = check_of(store, name, code, bytes)};
    memcpy(entry + 1, code, bytes);
    atomic_store_explicit(used, atomic_load(used) + entry_bytes(bytes), memory_order_release);
}
