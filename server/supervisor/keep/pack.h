/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * pack: what is kept of an object as bytes, and the way back.
 *
 * Both sides name the same parts in the same order. Descriptors are named by the numbers under
 * which the service manager stores them (keeper.h). A failure, for want of memory or because the
 * bytes end too early, is remembered, so that a caller asks once, at the end. Pure; one thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_KEEP_PACK_H
#define GPUSHARE_SERVER_SUPERVISOR_KEEP_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: empty. */
struct pack {
    uint8_t *data;
    size_t bytes, room;
    uint32_t *fds; /* numbers of the descriptors that were named */
    uint32_t fd_count, fd_room;
    bool failed;
};

/* Empties it, and keeps its memory. */
void pack_begin(struct pack *pack);
/* Frees its memory. Idempotent. */
void pack_free(struct pack *pack);

void pack_bytes(struct pack *pack, const void *data, size_t bytes);
void pack_number(struct pack *pack, uint64_t number);
/* A descriptor by its number; 0: there is none. */
void pack_fd(struct pack *pack, uint32_t number);

/* Members of a struct, without pointers, which are kept as they lie in memory, in the order of the
 * table. */
struct pack_member {
    const char *name;
    size_t at, bytes;
};

struct pack_table {
    const struct pack_member *members;
    size_t count;
};

#define PACK_MEMBER(type, member)                                                                  \
    {                                                                                              \
        .name = #member, .at = offsetof(type, member), .bytes = sizeof(((type *)0)->member)        \
    }
#define PACK_TABLE(rows)                                                                           \
    {                                                                                              \
        (rows), sizeof(rows) / sizeof *(rows)                                                      \
    }

void pack_members(struct pack *pack, const struct pack_table *table, const void *object);

/* A number for what the bytes of the members mean: it follows from their names, sizes and order.
 * form: a number to begin with. It is raised when a member's own struct, or what stands behind the
 * members, changes otherwise. */
uint32_t pack_members_layout(const struct pack_table *table, uint32_t form);

struct unpack {
    const uint8_t *at, *end;
    bool failed;
};

struct unpack unpack_begin(const void *data, size_t bytes);
/* Zeros after a failure. */
void unpack_bytes(struct unpack *unpack, void *to, size_t bytes);
uint64_t unpack_number(struct unpack *unpack);
/* A number up to most; a greater one is a failure. */
uint64_t unpack_number_max(struct unpack *unpack, uint64_t most);
uint32_t unpack_fd(struct unpack *unpack);
/* The next bytes where they lie; NULL after a failure. */
const void *unpack_take(struct unpack *unpack, size_t bytes);
void unpack_members(struct unpack *unpack, const struct pack_table *table, void *object);
/* Goes on behind the members. */
void unpack_skip_members(struct unpack *unpack, const struct pack_table *table);
/* Whether all was read, and nothing failed. */
bool unpack_is_whole(const struct unpack *unpack);

#endif
