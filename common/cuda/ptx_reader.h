/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ptx_reader: the state that the files of the PTX reader share while they read; private to
 * common/cuda/ptx*.c. The first error, or lack of memory, sets `failed`. From then on every token
 * is the end, so loops end without a check of each step.
 */
#ifndef GPUSHARE_COMMON_CUDA_PTX_READER_H
#define GPUSHARE_COMMON_CUDA_PTX_READER_H

#include "common/hash.h"
#include "common/messages_code.h"
#include "common/cuda/ptx.h"
#include "common/cuda/ptx_token.h"

struct ptx_arena;
/* Makes an arena. max_bytes: the bytes that it may use, with those that ptx_arena_charge counts.
 * NULL without memory. */
struct ptx_arena *ptx_arena_create(size_t max_bytes);
void ptx_arena_destroy(struct ptx_arena *arena);
/* Allocates zeroed memory, aligned to 16, which lives as long as the arena. NULL without memory,
 * or if max_bytes is reached. */
void *ptx_arena_alloc(struct ptx_arena *arena, size_t bytes);
/* Counts memory that lies outside the arena. Returns false, and counts nothing, if max_bytes would
 * be exceeded. ptx_arena_return takes it off. */
bool ptx_arena_charge(struct ptx_arena *arena, size_t bytes);
void ptx_arena_return(struct ptx_arena *arena, size_t bytes);
size_t ptx_arena_used(const struct ptx_arena *arena);
/* Whether a request was refused because of max_bytes. */
bool ptx_arena_exceeded(const struct ptx_arena *arena);

/* An array that grows outside the arena, and moves into it when it is complete. */
struct ptx_list {
    void *items;
    uint32_t count, capacity;
    size_t bytes; /* bytes counted in the arena */
};

enum ptx_name_kind { PTX_NAME_VARIABLE, PTX_NAME_FUNCTION, PTX_NAME_LABEL };

struct ptx_name {
    const char *name;
    uint32_t length, scope;
    uint32_t hash;
    enum ptx_name_kind kind;
    void *object;   /* variable or function */
    uint32_t label; /* label */
};

struct ptx_reader {
    struct ptx_lexer lexer;
    struct ptx_token token; /* the next token, which is not consumed yet */
    uint32_t last_end;      /* end of the token that was consumed last */
    struct ptx_module *module;
    struct error *why;
    bool failed;
    const struct ptx_limits *limits;
    uint32_t steps; /* ptx_step */

    struct hash_key key;    /* the key of the names' hashes */
    struct ptx_name *names; /* open addressing; a power of two */
    uint32_t name_count, name_capacity;
    struct ptx_list scopes; /* uint32_t: the parent of each scope; scope 0 is the module */
    uint32_t scope;

    struct ptx_list variables, functions; /* of the module */
    struct ptx_function *function;        /* the body being read, or NULL */
    struct ptx_list instructions, labels, body_variables, label_uses;
    uint32_t nesting;
};

/* ---- ptx_names.c: arena, lists, scopes ---- */
/* Sets the reader's error, if it has none: number and format as of error_set, the line (0: none)
 * before them. */
void ptx_fail(struct ptx_reader *r, uint32_t line, uint32_t number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* from the arena; without memory the reader fails */
void *ptx_new(struct ptx_reader *r, size_t bytes);
const char *ptx_slice(struct ptx_reader *r, uint32_t start, uint32_t end);
/* Adds a zeroed item and returns it; NULL, and the reader fails, without memory. */
void *ptx_list_add(struct ptx_reader *r, struct ptx_list *list, size_t item_bytes);
/* Frees the items. The list is empty afterwards. */
void ptx_list_drop(struct ptx_reader *r, struct ptx_list *list);
/* Moves the items into the arena and returns them. The list is empty afterwards. */
void *ptx_list_keep(struct ptx_reader *r, struct ptx_list *list, size_t item_bytes);

/* Begin and end a scope of names, for a body or a block. The calls come in pairs. */
void ptx_scope_push(struct ptx_reader *r);
void ptx_scope_pop(struct ptx_reader *r);
/* Declares a name in the current scope. A second declaration of the name is an error, unless
 * may_exist; then the first one is returned. */
struct ptx_name *ptx_declare(struct ptx_reader *r, const char *name, enum ptx_name_kind kind,
                             void *object, bool may_exist);
/* Looks a name up in a scope and its parents; NULL if there is none. kinds: a set of 1 << kind. */
struct ptx_name *ptx_lookup(struct ptx_reader *r, uint32_t scope, const char *name, size_t length,
                            unsigned kinds);

/* A step of reading: one token, or one use of a label. The reader fails if the limits end it. */
void ptx_step(struct ptx_reader *r);

/* ---- tokens ---- */
void ptx_advance(struct ptx_reader *r);
bool ptx_at(const struct ptx_reader *r, char punct);
bool ptx_accept(struct ptx_reader *r, char punct);
bool ptx_expect(struct ptx_reader *r, char punct);
bool ptx_at_dot(const struct ptx_reader *r, const char *directive); /* ".reg" */
bool ptx_accept_dot(struct ptx_reader *r, const char *directive);
/* The kinds of things that may have to stand in a place of the text. */
#define PTX_WANTED(name, noun) PTX_WANTED_##name,
enum ptx_wanted { MESSAGES_PTX_WANTED(PTX_WANTED) };
#undef PTX_WANTED
/* The next token is not what has to stand here: a thing of the grammar, or a punctuation mark. */
void ptx_unexpected(struct ptx_reader *r, enum ptx_wanted wanted);
void ptx_lacks(struct ptx_reader *r, char punct);
/* The next token is a directive that the reader does not know. */
void ptx_unknown_directive(struct ptx_reader *r);

/* ---- ptx_declare.c ---- */
/* The state space that the next token names, or PTX_SPACE_NONE. */
enum ptx_space ptx_space_at(const struct ptx_reader *r);
void ptx_read_variables(struct ptx_reader *r, enum ptx_linkage linkage, uint32_t start);
/* Reads "(.param .b32 a, ...)". Names are declared in the current scope. */
void ptx_read_params(struct ptx_reader *r, struct ptx_function *function, bool returns);
uint64_t ptx_read_integer(struct ptx_reader *r, uint64_t maximum);

/* ---- ptx_body.c ---- */
void ptx_read_body(struct ptx_reader *r, struct ptx_function *function);

#endif
