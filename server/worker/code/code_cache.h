/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * code_cache: compiled code by the text that it was made from. Clients' texts are the same where
 * their programs are, so one compilation serves all of them.
 *
 * A text is known by its length and two hashes whose keys nobody outside sees: 122 bits, which no
 * client can make collide (common/hash.h). The oldest code goes when room is short. Any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CODE_CACHE_H
#define GPUSHARE_SERVER_WORKER_CODE_CODE_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "server/worker/code/compiled.h"

struct code_cache {
    struct hash_key keys[2];
    pthread_mutex_t lock;
    struct code_cache_entry *oldest; /* the least recently used */
    uint64_t bytes;                  /* of all code in it */
};

struct code_name {
    uint64_t length, hashes[2];
};

/* Returns 0 or -errno: of the system's random numbers. */
int code_cache_open(struct code_cache *cache);
/* Code that others hold stays theirs. */
void code_cache_close(struct code_cache *cache);

struct code_name code_cache_name(const struct code_cache *cache, const char *text, size_t length);

bool code_name_equal(const struct code_name *one, const struct code_name *other);

/* With a hold for the caller; NULL: not known. */
struct compiled *code_cache_find(struct code_cache *cache, const struct code_name *name);

/* Keeps the code, if all in the cache fits into room bytes without older code. */
void code_cache_put(struct code_cache *cache, const struct code_name *name,
                    struct compiled *compiled, uint64_t room);

/* Lets the oldest go until the rest fits into room bytes. */
void code_cache_trim(struct code_cache *cache, uint64_t room);

#endif
