/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: module images, copied from what clients pass, and shared where their content is the same.
 *
 * A client's file is read, never mapped: it could shrink or change under a reader. Only memory
 * files are accepted (F_GET_SEALS tells): a file system that the client serves itself could stop
 * the server. The copy is sealed against writing, so that worker and supervisor always see the same
 * bytes. Loop thread, except image_copy.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CLIENT_IMAGE_H
#define GPUSHARE_SERVER_SUPERVISOR_CLIENT_IMAGE_H

#include <stdint.h>

#include "common/hash.h"

struct image {
    int fd; /* a sealed memfd */
    uint64_t bytes;
    uint64_t hash;
    uint32_t references;
    struct image *next;
    struct image_cache *cache; /* NULL until image_admit */
};

struct image_cache {
    struct hash_key key;
    struct image *first;
    uint32_t images;
    uint64_t bytes;
};

/* Makes an empty cache. Returns 0 or -errno. */
int image_cache_open(struct image_cache *cache);

/* Every image must have been released; an assertion checks that. */
void image_cache_close(struct image_cache *cache);

/*
 * Copies `bytes` bytes, at least 1, from the start of fd, which stays the caller's. key is the
 * cache's; the cache itself is not touched. Returns 0; -EBADF: fd is no memory file; -ENODATA: the
 * file is shorter; or another -errno. Any thread.
 */
int image_copy(struct image **image, const struct hash_key *key, int fd, uint64_t bytes);

/*
 * Puts a copy into the cache and returns it with one reference. If the cache has an image of the
 * same content, frees the copy and returns that image with one more reference. Contents are
 * compared, not only hashes, since a client could make two images whose hashes collide.
 */
struct image *image_admit(struct image_cache *cache, struct image *image);

/* Gives back a reference, or frees a copy that was never admitted. NULL is allowed. */
void image_release(struct image *image);

#endif
