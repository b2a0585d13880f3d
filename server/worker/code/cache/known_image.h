/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * known_image: what reading a text has found, for all modules that have the same text.
 *
 * Programs of one kind load the same images, and a new worker is given all modules of all clients
 * at once.
 *
 * Each image is read once: its needs are known to the next module that has it, and a
 * module that an earlier worker had already is loaded without reading it at all. Only texts whose
 * code does not depend on the place of their variables are kept, and none with constants of its own
 * or with variables that stay with the driver.
 *
 * A table is bounded in bytes; the image that was used longest ago goes first. Images that were
 * loaded are noted beside the compiled code (code_cache.h), where the next worker finds them. Any
 * thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CACHE_KNOWN_IMAGE_H
#define GPUSHARE_SERVER_WORKER_CODE_CACHE_KNOWN_IMAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"
#include "protocol.h"
#include "server/worker/code/cache/code_cache.h"

struct known_image;
struct rewrite;
struct symbols;

struct known_images {
    struct code_cache *cache; /* NULL: no worker but this one knows the images */
    struct hash_key keys[2];
    pthread_mutex_t lock; /* of all below */
    struct code_index index;
    struct list by_use; /* the least recently used first */
    size_t bytes, max;
    bool open;
};

/* Open images must not move. max: bytes that all may take. Without the system's random numbers
 * nothing is known. */
void known_images_open(struct known_images *images, size_t max);
/* From now on images are noted in the cache, which is open and outlives the images, and looked for
 * there. Before anything is known, and before another thread calls. */
void known_images_share(struct known_images *images, struct code_cache *cache);
void known_images_close(struct known_images *images); /* idempotent */

/* The name of an image with these bytes. Needs no lock. */
struct code_name known_image_name(const struct known_images *images, const void *bytes,
                                  size_t count);

/* The image of this name, with its needs; NULL: it is not known. The caller releases it. */
struct known_image *known_image_find(struct known_images *images, const struct code_name *name,
                                     struct proto_worker_module_needs *needs);

/* Adds an image that was read, with its needs. Returns it, for the caller to release; NULL: it is
 * not kept. */
struct known_image *known_image_add(struct known_images *images, const struct code_name *name,
                                    const struct rewrite *rewrite,
                                    const struct proto_worker_module_needs *needs);

/* Notes what a load has found: the name of the rewritten text, the constant that gets the base and
 * the symbols, which stay the caller's. After rewrite_place. image NULL: does nothing. */
void known_image_loaded(struct known_images *images, struct known_image *image,
                        const struct code_name *text, const struct rewrite *rewrite,
                        const struct symbols *symbols);

/* For a load without reading. */
struct known_code {
    struct code_name text;   /* the rewritten text's */
    const char *constant;    /* NULL: none; as long as the image is held */
    struct symbols *symbols; /* with the variables at the place that was asked for; the caller's */
    uint64_t global_bytes;
    size_t tree_bytes;
};

/* Returns false if no load has found it yet, or there is no memory. image NULL: false. */
bool known_image_code(struct known_images *images, struct known_image *image, uint64_t base,
                      struct known_code *code);

/* NULL is allowed. */
void known_image_release(struct known_images *images, struct known_image *image);

#endif
