/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * objects: the numbers that a session has given to its client's streams, events, kernels and links,
 * with what a worker has to be told to make each of them.
 *
 * Numbers begin with 1. The lowest free number is given next, so that the worker's tables stay
 * dense. A number is taken from objects_new until objects_free: while the worker makes the object,
 * and, for a stream or an event, until the worker has said that nothing uses it any more.
 *
 * An object's number is its row in a table that the session keeps (keep/kept_table.h). The
 * functions here mark it, so objects are changed through objects_change.
 *
 * No I/O. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CLIENT_OBJECTS_H
#define GPUSHARE_SERVER_SUPERVISOR_CLIENT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "server/supervisor/keep/kept_table.h"

enum object_kind { OBJECT_STREAM, OBJECT_EVENT, OBJECT_FUNCTION, OBJECT_LINK, OBJECT_KINDS };

enum object_state {
    OBJECT_FREE,
    OBJECT_MAKING, /* the worker was asked to make it */
    OBJECT_MADE,
    OBJECT_ENDING, /* destroyed by the client; the worker may still use it */
};

struct object_function {
    uint32_t module;       /* number of its module */
    uint32_t asking;       /* requests under way that look the kernel up; not kept */
    uint32_t shared_bytes; /* maximum of dynamic shared memory, if shared_set */
    bool shared_set;
    uint32_t next; /* number of the next kernel in the same bucket; 0: none */
    uint64_t hash;
    uint32_t name_bytes;
    char *name; /* name_bytes of them, without NUL */
};

struct object {
    enum object_state state;
    bool destroyed; /* ENDING: the worker has been told, and has answered */
    bool gone;      /* ENDING: nothing uses it any more; the number is free after that answer */
    union {
        int32_t priority; /* of a stream: the priority that the client asked for */
        struct object_function function;
        uint32_t client; /* of a link: the number of the other connection */
    };
};

struct object_table {
    struct object *rows; /* by number - 1 */
    uint32_t count, room;
    uint32_t max; /* greatest number that may be given */
    uint32_t low; /* no row before this one is free */
    uint32_t used;
};

struct objects {
    struct object_table tables[OBJECT_KINDS];
    const struct hash_key *key; /* for hashes of the kernels' names */
    uint32_t *buckets;          /* numbers of kernels by hash; NULL before the first kernel */
    struct kept_table *kept;    /* by kind; or NULL */
};

/* streams: how many the client may have, the default stream included, which is not in the table.
 * The key must outlive the table, and so must `kept`, with a table for each kind; NULL: nothing is
 * kept. */
void objects_open(struct objects *objects, uint32_t streams, const struct hash_key *key,
                  struct kept_table *kept);

/* Frees everything. A table that is all zero is allowed. */
void objects_close(struct objects *objects);

/* Gives a number to a new object, which is in state MAKING. Returns 0; -ENOSPC if all numbers of
 * the kind are taken; -ENOMEM. */
int objects_new(struct objects *objects, enum object_kind kind, uint32_t *number);

/* Gives a new object exactly this number, which is free; of kernels with objects_function_put.
 * Returns 0; -EINVAL: it is taken or out of range; -ENOMEM. */
int objects_put(struct objects *objects, enum object_kind kind, uint32_t number);
int objects_function_put(struct objects *objects, uint32_t module, const void *name,
                         size_t name_bytes, uint32_t number);

/* The object of this number, or NULL if the number is free or out of range. The pointer is valid
 * until the next objects_new of this kind. */
const struct object *objects_find(const struct objects *objects, enum object_kind kind,
                                  uint32_t number);

/* The same, to be changed. */
struct object *objects_change(struct objects *objects, enum object_kind kind, uint32_t number);

/* Frees a number that is taken. */
void objects_free(struct objects *objects, enum object_kind kind, uint32_t number);

/* Like objects_new, for a kernel. The name is copied. */
int objects_function_new(struct objects *objects, uint32_t module, const void *name,
                         size_t name_bytes, uint32_t *number);

/* The number of the module's kernel with this name, or 0. */
uint32_t objects_function_find(const struct objects *objects, uint32_t module, const void *name,
                               size_t name_bytes);

/* One more request looks the kernel up, which is there; or one fewer. */
void objects_function_ask(struct objects *objects, uint32_t number);
void objects_function_told(struct objects *objects, uint32_t number);

/* Frees the numbers of all kernels of a module that was unloaded. */
void objects_unload(struct objects *objects, uint32_t module);

#endif
