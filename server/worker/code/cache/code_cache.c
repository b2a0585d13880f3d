/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/code_cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/messages.h"

struct code_cache_entry {
    struct code_cache_entry *next;
    struct code_name name;
    struct compiled *compiled;
};

int code_cache_open(struct code_cache *cache, int store)
{
    *cache = (struct code_cache){.bytes = 0};
    pthread_mutex_init(&cache->lock, NULL);
    int opened = code_store_open(&cache->store, store);
    if (opened < 0)
        log_warning(MESSAGE_TEXT(code_store_unusable), strerror(-opened));
    const struct hash_key *keys = code_store_keys(&cache->store);
    if (keys) {
        memcpy(cache->keys, keys, sizeof cache->keys);
        return 0;
    }
    int error = hash_key_make(&cache->keys[0]);
    return error < 0 ? error : hash_key_make(&cache->keys[1]);
}

/* Under the lock. */
static void drop_oldest(struct code_cache *cache)
{
    struct code_cache_entry *entry = cache->oldest;
    cache->oldest = entry->next;
    cache->bytes -= compiled_bytes(entry->compiled);
    compiled_release(entry->compiled);
    free(entry);
}

void code_cache_trim(struct code_cache *cache, uint64_t room)
{
    pthread_mutex_lock(&cache->lock);
    while (cache->oldest && cache->bytes > room)
        drop_oldest(cache);
    pthread_mutex_unlock(&cache->lock);
}

void code_cache_close(struct code_cache *cache)
{
    code_cache_trim(cache, 0);
    code_store_close(&cache->store);
    pthread_mutex_destroy(&cache->lock);
}

struct code_name code_cache_name(const struct code_cache *cache, const char *text, size_t length)
{
    struct code_name name = {.length = length};
    for (unsigned i = 0; i < 2; i++)
        name.hashes[i] =
            hash_end(&cache->keys[i], hash_add_bytes(&cache->keys[i], HASH_BEGIN, text, length));
    return name;
}

/* As the youngest. Under the lock. */
static void append_entry(struct code_cache *cache, struct code_cache_entry *entry)
{
    struct code_cache_entry **end = &cache->oldest;
    while (*end)
        end = &(*end)->next;
    entry->next = NULL;
    *end = entry;
}

/* Under the lock. */
static struct code_cache_entry *find_entry(struct code_cache *cache, const struct code_name *name)
{
    for (struct code_cache_entry **at = &cache->oldest; *at; at = &(*at)->next) {
        struct code_cache_entry *entry = *at;
        if (!code_name_equal(&entry->name, name))
            continue;
        *at = entry->next;
        append_entry(cache, entry);
        return entry;
    }
    return NULL;
}

/* Keeps the code as the youngest, if it fits. Two threads may have made the same. Under the lock.
 */
static void keep_code(struct code_cache *cache, const struct code_name *name,
                      struct compiled *compiled, uint64_t room)
{
    size_t bytes = compiled_bytes(compiled);
    struct code_cache_entry *entry = bytes <= room ? malloc(sizeof *entry) : NULL;
    if (!entry)
        return;
    *entry = (struct code_cache_entry){.name = *name};
    while (cache->oldest && cache->bytes > room - bytes)
        drop_oldest(cache);
    if (find_entry(cache, name)) {
        free(entry);
        return;
    }
    entry->compiled = compiled_hold(compiled);
    cache->bytes += bytes;
    append_entry(cache, entry);
}

/* Under the lock. */
static struct compiled *take_from_store(struct code_cache *cache, const struct code_name *name,
                                        uint64_t room)
{
    size_t bytes;
    void *code = code_store_copy(&cache->store, name, &bytes);
    struct compiled *compiled = code ? compiled_new(code, bytes) : NULL;
    if (compiled)
        keep_code(cache, name, compiled, room);
    return compiled;
}

struct compiled *code_cache_find(struct code_cache *cache, const struct code_name *name,
                                 uint64_t room)
{
    pthread_mutex_lock(&cache->lock);
    struct code_cache_entry *entry = find_entry(cache, name);
    struct compiled *compiled =
        entry ? compiled_hold(entry->compiled) : take_from_store(cache, name, room);
    pthread_mutex_unlock(&cache->lock);
    return compiled;
}

void code_cache_put(struct code_cache *cache, const struct code_name *name,
                    struct compiled *compiled, uint64_t room)
{
    pthread_mutex_lock(&cache->lock);
    keep_code(cache, name, compiled, room);
    code_store_add(&cache->store, name, compiled_code(compiled), compiled_bytes(compiled));
    pthread_mutex_unlock(&cache->lock);
}
