/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: module images, copied out of what clients pass and shared by content.
 *
 * A client's file is read, never mapped: it could shrink or change under a reader.
 * Only memory files are accepted (F_GET_SEALS tells): reading from a file system
 * that the client itself serves would let it stop the server. The copy is sealed
 * against writing, so that worker and supervisor see the same bytes for ever.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_IMAGE_H
#define GPUSHARE_SERVER_SUPERVISOR_IMAGE_H

#include <stdint.h>

#include "common/hash.h"

struct image {
    int fd; /* a sealed memfd */
    uint64_t bytes;
    uint64_t hash;
    uint32_t references;
    struct image *next;
    struct image_cache *cache; /* NULL until it has been admitted */
};

struct image_cache {
    struct hash_key key;
    struct image *first;
    uint32_t images;
    uint64_t bytes;
};

/* Empty. 0 or -errno. */
int image_cache_open(struct image_cache *cache);

/* Asserts that no image is left. */
void image_cache_close(struct image_cache *cache);

/*
 * Copies bytes (at least 1) from the start of fd, which stays the caller's. key: the
 * cache's. Any thread: it touches no cache. Returns 0; -EBADF: not a memory file; -ENODATA: the
 * file is shorter; or another -errno.
 */
int image_copy(struct image **image, const struct hash_key *key, int fd, uint64_t bytes);

/*
 * Puts a copy into the cache and returns it with one reference, or the image of the
 * same content that was there (the copy is freed then). Equal hashes alone decide
 * nothing: contents are compared, for a client could make two that collide.
 */
struct image *image_admit(struct image_cache *cache, struct image *image);

/* Gives a reference back, or frees a copy that was never admitted. NULL is allowed. */
void image_release(struct image *image);

#endif
