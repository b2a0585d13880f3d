/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * linker_cache: reads /etc/ld.so.cache, in which ldconfig(8) notes the libraries of the system's
 * folders. Its content is checked as any file's. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_LINKER_CACHE_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_LINKER_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct linker_cache {
    const unsigned char *data;
    size_t bytes;
    size_t start; /* of the part that texts are counted from */
    uint32_t count;
};

/* A cache that can't be read, or that has another form than glibc's since 2.2, is empty. */
void linker_cache_open(struct linker_cache *cache, const char *path);
void linker_cache_close(struct linker_cache *cache);

/* Returns the path of the library's next file from entry *index on, which it moves behind that: one
 * for each kind of machine. NULL if there is no more. Valid until the cache is closed. */
const char *linker_cache_next(const struct linker_cache *cache, const char *name, uint32_t *index);

#endif
