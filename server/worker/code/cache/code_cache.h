/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * code_cache: compiled code by the text that it was made from. Clients' texts are the same where
 * their programs are, so one compilation serves all of them.
 *
 * The oldest code goes when room is short. Code that an earlier worker of the device has made is
 * taken from the store (code_store.h), which also has what is worth knowing of images. Any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CACHE_CODE_CACHE_H
#define GPUSHARE_SERVER_WORKER_CODE_CACHE_CODE_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "common/list.h"
#include "server/worker/code/cache/code_store.h"
#include "server/worker/code/cache/compiled.h"

struct code_cache {
    struct hash_key keys[2];
    pthread_mutex_t lock; /* of all below */
    struct code_index index;
    struct list by_use; /* the least recently used first */
    uint64_t bytes;     /* of all code in it */
    struct code_store store;
};

/* An open cache must not move (its list). store: descriptor of the store's memory, which becomes
 * the cache's; -1: there is none. A store that can't be used is done without. Returns 0 or -errno:
 * of the system's random numbers. */
int code_cache_open(struct code_cache *cache, int store);
/* Code that others hold stays theirs. */
void code_cache_close(struct code_cache *cache);

/* The name of a text of so many bytes. Needs no lock. */
struct code_name code_cache_name(const struct code_cache *cache, const char *text, size_t length);

/* With a hold for the caller; NULL: not known. Code from the store is kept if all in the cache fits
 * into room bytes. */
struct compiled *code_cache_find(struct code_cache *cache, const struct code_name *name,
                                 uint64_t room);

/* Adds the code to the store, and keeps it, if all in the cache fits into room bytes without older
 * code. */
void code_cache_put(struct code_cache *cache, const struct code_name *name,
                    struct compiled *compiled, uint64_t room);

/* Puts findings about an image into the store, and copies them from there; the caller frees the
 * copy. NULL: there are none. */
void code_cache_note(struct code_cache *cache, const struct code_name *image, const void *findings,
                     size_t bytes);
void *code_cache_recall(struct code_cache *cache, const struct code_name *image, size_t *bytes);

/* Lets the oldest go until the rest fits into room bytes. */
void code_cache_trim(struct code_cache *cache, uint64_t room);

#endif
