/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/cache/code_cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"

struct entry {
    struct code_link link;
    struct list_link use;
    struct compiled *compiled;
};

int code_cache_open(struct code_cache *cache, int store)
{
    *cache = (struct code_cache){.bytes = 0};
    pthread_mutex_init(&cache->lock, NULL);
    code_index_open(&cache->index);
    list_init(&cache->by_use);
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
    struct entry *entry = LIST_FIRST(&cache->by_use, struct entry, use);
    list_remove(&entry->use);
    code_index_remove(&cache->index, &entry->link);
    cache->bytes -= compiled_bytes(entry->compiled);
    compiled_release(entry->compiled);
    free(entry);
}

void code_cache_trim(struct code_cache *cache, uint64_t room)
{
    pthread_mutex_lock(&cache->lock);
    while (!list_is_empty(&cache->by_use) && cache->bytes > room)
        drop_oldest(cache);
    pthread_mutex_unlock(&cache->lock);
}

void code_cache_close(struct code_cache *cache)
{
    code_cache_trim(cache, 0);
    code_index_close(&cache->index);
    code_store_close(&cache->store);
    pthread_mutex_destroy(&cache->lock);
}

struct code_name code_cache_name(const struct code_cache *cache, const char *text, size_t length)
{
    return code_name_make(cache->keys, CODE_KIND_TEXT, text, length);
}

/* It is the youngest then. Under the lock. */
static struct entry *find_entry(struct code_cache *cache, const struct code_name *name)
{
    struct code_link *link = code_index_find(&cache->index, name);
    if (!link)
        return NULL;
    struct entry *entry = container_of(link, struct entry, link);
    list_remove(&entry->use);
    list_append(&cache->by_use, &entry->use);
    return entry;
}

/* Keeps the code as the youngest, if it fits. Two threads may have made the same. Under the lock.
 */
static void keep_code(struct code_cache *cache, const struct code_name *name,
                      struct compiled *compiled, uint64_t room)
{
    size_t bytes = compiled_bytes(compiled);
    struct entry *entry = bytes <= room ? malloc(sizeof *entry) : NULL;
    if (!entry)
        return;
    *entry = (struct entry){.link.name = *name};
    while (!list_is_empty(&cache->by_use) && cache->bytes > room - bytes)
        drop_oldest(cache);
    if (find_entry(cache, name)) {
        free(entry);
        return;
    }
    entry->compiled = compiled_hold(compiled);
    cache->bytes += bytes;
    code_index_add(&cache->index, &entry->link);
    list_append(&cache->by_use, &entry->use);
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
    struct entry *entry = find_entry(cache, name);
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

void code_cache_note(struct code_cache *cache, const struct code_name *image, const void *findings,
                     size_t bytes)
{
    pthread_mutex_lock(&cache->lock);
    code_store_add(&cache->store, image, findings, bytes);
    pthread_mutex_unlock(&cache->lock);
}

void *code_cache_recall(struct code_cache *cache, const struct code_name *image, size_t *bytes)
{
    pthread_mutex_lock(&cache->lock);
    void *findings = code_store_copy(&cache->store, image, bytes);
    pthread_mutex_unlock(&cache->lock);
    return findings;
}
