/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * image: module images, copied from what clients pass, and shared where their content is the same.
 *
 * A client's file is read, never mapped: it could shrink or change under a reader. Only memory
 * files are accepted (F_GET_SEALS tells): a file system that the client serves itself could stop
 * the server. The copy is sealed against writing, so that worker and supervisor always see the same
 * bytes.
 *
 * An image is copied, compared with each known one that has its hash, and admitted if all of them
 * differ. The hash alone proves nothing, since a client could make two images whose hashes collide.
 * Copying and comparing are steps of a job. Loop thread, except for these two.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CLIENT_IMAGE_H
#define GPUSHARE_SERVER_SUPERVISOR_CLIENT_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"
#include "common/list.h"
#include "server/supervisor/loop/closer.h"

struct image {
    int fd; /* a sealed memfd; -1: given back, since the content was known */
    uint64_t bytes;
    uint64_t hash;             /* of the whole content once it is copied */
    uint64_t copied, compared; /* bytes so far; compared: with one known image */
    uint64_t number;           /* by order of admission; of a copy, the last one that it met */
    uint32_t references;
    uint32_t kept; /* number of the descriptor (keep/keeper.h) */
    struct list_link in_cache;
    struct image_cache *cache; /* NULL until image_admit */
};

struct image_cache {
    struct hash_key key;
    struct list list; /* struct image */
    uint32_t images;
    uint64_t bytes;
    uint64_t admitted; /* images so far */
};

/* Makes an empty cache. Returns 0 or -errno. */
int image_cache_open(struct image_cache *cache);

/* Every image must have been released; an assertion checks that. */
void image_cache_close(struct image_cache *cache);

/*
 * Copies the next JOB_STEP_BYTES of the `bytes` bytes, at least 1, from the start of fd, which
 * stays the caller's. *image is NULL before the first step. key is the cache's; the cache itself is
 * not touched. Returns 0 when all is copied; JOB_AGAIN; or, with *image NULL, -EBADF: fd is no
 * memory file; -ENODATA: the file is shorter; -ENOEXEC: it begins as no image does; or another
 * -errno. Any thread.
 */
int image_copy(struct image **image, const struct hash_key *key, int fd, uint64_t bytes);

/* The next image of the cache that may have the copy's content, with a reference; or NULL. Each
 * image is found once for a copy, and every one that is admitted in the meantime. */
struct image *image_find(struct image_cache *cache, struct image *copy);

/*
 * Compares the next JOB_STEP_BYTES of a copy with those of an image that was found. Returns
 * JOB_AGAIN; or 0, and *equal says whether they have the same content. The memory of an equal copy
 * is given back. Any thread.
 */
int image_compare(struct image *copy, const struct image *known, bool *equal);

/* Puts a copy, for which image_find finds nothing more, into the cache with one reference. */
void image_admit(struct image_cache *cache, struct image *copy);

/* Gives back a reference, or frees a copy that was never admitted. NULL is allowed. The closer
 * gives its memory back, which takes a third of a second for a gibibyte; NULL: it is done here. */
void image_release(struct image *image, struct closer *closer);

#endif
