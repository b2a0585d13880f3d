/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * code_store: compiled code, and findings about texts, in memory that outlives the worker, so that
 * the next one need neither read nor compile again.
 *
 * The supervisor makes the memory, zeroed, and gives it to each worker of a device. One worker
 * writes at a time; another may stand by and read.
 *
 * The memory has two halves: code goes into one until that
 * is full, and then the other one is emptied. So what was added last is there, half of the memory
 * at least. A worker that dies while it adds leaves what was there before. Code is checked by a
 * hash before it is used.
 *
 * Under the lock of whoever owns it (code_cache.h).
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CACHE_CODE_STORE_H
#define GPUSHARE_SERVER_WORKER_CODE_CACHE_CODE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "common/ipc/shm.h"
#include "server/worker/code/cache/code_name.h"

enum { CODE_STORE_HALVES = 2 };

struct code_store {
    struct shm memory;       /* base NULL: there is none */
    struct code_index index; /* of the entries below */
    uint64_t seen[CODE_STORE_HALVES];
};

/* Opens the memory, of which fd is a descriptor that becomes the store's; -1: there is none, which
 * is no error. The first to open it makes the keys. Returns 0 or -errno: there is no store then. */
int code_store_open(struct code_store *store, int fd);
/* The memory stays for others. Idempotent; a zeroed store is no open one. */
void code_store_close(struct code_store *store);

/* The keys for names in this store, which are the same for each worker; NULL: there is no store. */
const struct hash_key *code_store_keys(const struct code_store *store);

/* A copy of the code of this name, which the caller frees, with its size. NULL: it is not there, or
 * is not whole, or there is no memory for it. */
void *code_store_copy(struct code_store *store, const struct code_name *name, size_t *bytes);

/* Adds code that is not there yet. Code larger than half of the store is not kept. */
void code_store_add(struct code_store *store, const struct code_name *name, const void *code,
                    size_t bytes);

#endif
