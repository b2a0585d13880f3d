/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/explain/linker_cache.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

/* The form of glibc's sysdeps/generic/dl-cache.h. The older part stands before the newer one where
 * ldconfig writes both. */
struct old_head {
    char magic[12];
    uint32_t count;
};
struct old_entry {
    int32_t flags;
    uint32_t name, path;
};
struct new_head {
    char magic[20];
    uint32_t count, text_bytes;
    uint32_t unused[5];
};
struct new_entry {
    int32_t flags;
    uint32_t name, path, system;
    uint64_t hardware;
};
_Static_assert(sizeof(struct old_head) == 16 && sizeof(struct old_entry) == 12, "dl-cache.h");
_Static_assert(sizeof(struct new_head) == 48 && sizeof(struct new_entry) == 24, "dl-cache.h");

/* Longer paths can't be opened. */
enum { TEXT_MAX = 4096 };

static bool copy(const struct linker_cache *cache, size_t at, void *to, size_t bytes)
{
    if (at > cache->bytes || cache->bytes - at < bytes)
        return false;
    memcpy(to, cache->data + at, bytes);
    return true;
}

static const char *text_at(const struct linker_cache *cache, size_t at)
{
    if (at >= cache->bytes ||
        !memchr(cache->data + at, '\0', min(cache->bytes - at, (size_t)TEXT_MAX)))
        return "";
    return (const char *)cache->data + at;
}

static void find_entries(struct linker_cache *cache)
{
    static const char old_magic[] = "ld.so-1.7.0", new_magic[] = "glibc-ld.so.cache1.1";
    struct old_head old;
    struct new_head head;
    if (copy(cache, 0, &old, sizeof old) && !memcmp(old.magic, old_magic, sizeof old_magic))
        cache->start = (sizeof old + (size_t)old.count * sizeof(struct old_entry) + 7) & ~(size_t)7;
    if (copy(cache, cache->start, &head, sizeof head) &&
        !memcmp(head.magic, new_magic, sizeof head.magic))
        cache->count = head.count;
}

void linker_cache_open(struct linker_cache *cache, const char *path)
{
    struct stat status;
    *cache = (struct linker_cache){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0) {
        void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED) {
            cache->data = data;
            cache->bytes = (size_t)status.st_size;
            find_entries(cache);
        }
    }
    close(fd);
}

void linker_cache_close(struct linker_cache *cache)
{
    if (cache->data)
        munmap((void *)cache->data, cache->bytes);
    *cache = (struct linker_cache){0};
}

const char *linker_cache_next(const struct linker_cache *cache, const char *name, uint32_t *index)
{
    struct new_entry entry;
    while (*index < cache->count) {
        size_t at = cache->start + sizeof(struct new_head) + (size_t)(*index)++ * sizeof entry;
        if (!copy(cache, at, &entry, sizeof entry))
            return NULL;
        if (!strcmp(text_at(cache, cache->start + entry.name), name))
            return text_at(cache, cache->start + entry.path);
    }
    return NULL;
}
