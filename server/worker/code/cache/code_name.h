/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * code_name: how the worker knows a text or an image again, and an index of things by their names.
 *
 * A name is the length and two hashes with keys that nobody outside sees: 122 bits, which no client
 * can make collide (common/hash.h).
 *
 * An index links structs that its caller owns (struct code_link is a member), so adding can't fail.
 * A search takes about as long whatever the index holds: a new worker looks for the code of all
 * modules of all clients at once. Under the lock of the index's owner.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CACHE_CODE_NAME_H
#define GPUSHARE_SERVER_WORKER_CODE_CACHE_CODE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"

struct code_name {
    uint64_t length, hashes[2];
};

/* The same bytes have another name as another kind. */
enum code_kind {
    CODE_KIND_TEXT = 1, /* rewritten PTX, of which there is compiled code */
    CODE_KIND_IMAGE,    /* an image as a client gave it */
};

struct code_name code_name_make(const struct hash_key keys[2], enum code_kind kind,
                                const void *bytes, size_t count);

/* Whether two names are of the same bytes, but for what a hash can't tell. Any thread. */
bool code_name_equal(const struct code_name *one, const struct code_name *other);

/* A thing in an index. Its name must not change there. */
struct code_link {
    struct code_link *next;
    struct code_name name;
};

enum { CODE_INDEX_FEW = 16 };

struct code_index {
    struct code_link **many; /* NULL: the few are enough, or there was no memory */
    size_t room, count;      /* buckets, a power of two; links */
    struct code_link *few[CODE_INDEX_FEW];
};

void code_index_open(struct code_index *index);
/* The links stay their owner's, and are in no index then. */
void code_index_close(struct code_index *index);

/* The first link of each bucket, of which there are `room`. */
struct code_link **code_index_buckets(struct code_index *index);
/* The link of this name; NULL: there is none. */
struct code_link *code_index_find(struct code_index *index, const struct code_name *name);
/* The caller has looked that there is none of its name yet. */
void code_index_add(struct code_index *index, struct code_link *link);
/* A link that is in the index. */
void code_index_remove(struct code_index *index, struct code_link *link);

#endif
