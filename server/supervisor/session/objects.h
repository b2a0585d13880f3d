/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * objects: the numbers that a session has given to its client's streams, events, kernels and links,
 * with what a worker has to be told to make each of them.
 *
 * Numbers begin with 1; the lowest one that is free is given next, so that the worker's tables stay
 * dense. A number is taken from object_new until object_free: while the worker makes the object,
 * and, of a stream or an event, until the worker has said that nothing uses it any more.
 * No I/O. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OBJECTS_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"

enum object_kind { OBJECT_STREAM, OBJECT_EVENT, OBJECT_FUNCTION, OBJECT_LINK, OBJECT_KINDS };

enum object_state {
    OBJECT_FREE,
    OBJECT_MAKING, /* asked of the worker */
    OBJECT_MADE,
    OBJECT_ENDING, /* destroyed by the client; the worker may still use it */
};

struct object_function {
    uint32_t module;
    uint32_t asking;       /* requests under way that look it up */
    uint32_t shared_bytes; /* most dynamic shared memory, if shared_set */
    bool shared_set;
    uint32_t next; /* number of the next with the same bits of the hash; 0: none */
    uint64_t hash;
    uint32_t name_bytes;
    char *name; /* no NUL */
};

struct object {
    enum object_state state;
    union {
        int32_t priority; /* of a stream, as the client asked */
        struct object_function function;
        uint32_t client; /* of a link: the number of the other connection */
    };
};

struct object_table {
    struct object *rows; /* number - 1 */
    uint32_t count, room;
    uint32_t max; /* numbers that there are */
    uint32_t low; /* no row before it is free */
    uint32_t used;
};

struct objects {
    struct object_table tables[OBJECT_KINDS];
    const struct hash_key *key; /* of the kernels' names */
    uint32_t *buckets;          /* numbers of kernels by hash; NULL before the first */
};

/* streams: how many the client may have, the default stream included, which is no object. The key
 * must outlive the table. */
void objects_open(struct objects *objects, uint32_t streams, const struct hash_key *key);

/* Frees everything. Also of a table that is all zero. */
void objects_close(struct objects *objects);

/* Gives a number to an object that is MAKING. 0; -ENOSPC: there are as many as there may be;
 * -ENOMEM. */
int object_new(struct objects *objects, enum object_kind kind, uint32_t *number);

/* The object of this number, or NULL if the number is free or none. Valid until the next object_new
 * of its kind. */
struct object *object_find(struct objects *objects, enum object_kind kind, uint32_t number);

/* Frees the number, which must be taken. */
void object_free(struct objects *objects, enum object_kind kind, uint32_t number);

/* Objects of a kind whose number is taken. */
uint32_t objects_used(const struct objects *objects, enum object_kind kind);

/* object_new for a kernel; the name is copied. */
int object_function_new(struct objects *objects, uint32_t module, const void *name,
                        size_t name_bytes, uint32_t *number);

/* The number of the module's kernel of this name, or 0. */
uint32_t object_function_find(const struct objects *objects, uint32_t module, const void *name,
                              size_t name_bytes);

/* The module is unloaded: its kernels' numbers are free. */
void objects_unload(struct objects *objects, uint32_t module);

#endif
