/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/ptx_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/list.h"
#include "common/messages.h"
#include "common/util.h"

struct chunk {
    struct queue_link link;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

struct ptx_arena {
    struct queue chunks; /* the newest first */
    size_t used, max_bytes;
    bool exceeded;
};

struct ptx_arena *ptx_arena_create(size_t max_bytes)
{
    struct ptx_arena *arena = calloc(1, sizeof(struct ptx_arena));
    if (arena)
        arena->max_bytes = max_bytes;
    return arena;
}

bool ptx_arena_charge(struct ptx_arena *arena, size_t bytes)
{
    if (bytes > arena->max_bytes - arena->used) {
        arena->exceeded = true;
        return false;
    }
    arena->used += bytes;
    return true;
}

void ptx_arena_return(struct ptx_arena *arena, size_t bytes)
{
    arena->used -= bytes;
}

size_t ptx_arena_used(const struct ptx_arena *arena)
{
    return arena->used;
}

bool ptx_arena_exceeded(const struct ptx_arena *arena)
{
    return arena->exceeded;
}

void ptx_arena_destroy(struct ptx_arena *arena)
{
    if (!arena)
        return;
    struct chunk *c;
    QUEUE_FOR_EACH (c, &arena->chunks, link)
        free(c);
    free(arena);
}

void *ptx_arena_alloc(struct ptx_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    struct chunk *c = QUEUE_FIRST(&arena->chunks, struct chunk, link);
    if (!c || c->size - c->used < bytes) {
        /* Chunks of 64 KiB: most objects are small, so few calls of calloc() and little unused
         * memory. */
        size_t size = max(bytes, (size_t)65536);
        if (!ptx_arena_charge(arena, sizeof(*c) + size))
            return NULL;
        c = calloc(1, sizeof(*c) + size);
        if (!c)
            return NULL; /* not given back: the reader fails, and the arena and its count end */
        c->size = size;
        queue_prepend(&arena->chunks, &c->link);
    }
    void *out = c->bytes + c->used;
    c->used += bytes;
    return out;
}

void ptx_fail(struct ptx_reader *r, uint32_t line, uint32_t number, const char *format, ...)
{
    /* Later failures are consequences of the first one, so only the first is told. */
    if (r->failed)
        return;
    r->failed = true;
    r->token.kind = PTX_TOKEN_END;
    r->why->number = number;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->why->text, sizeof(r->why->text), format, arguments);
    va_end(arguments);
    if (line)
        error_prefix(r->why, "line %u: ", line);
}

static void fail_memory(struct ptx_reader *r)
{
    const struct ptx_arena *arena = r->module->arena;
    if (arena->exceeded)
        ptx_fail(r, 0, MESSAGE(ptx_memory_max), arena->max_bytes);
    else
        ptx_fail(r, 0, MESSAGE(ptx_no_memory));
}

void *ptx_new(struct ptx_reader *r, size_t bytes)
{
    void *p = ptx_arena_alloc(r->module->arena, bytes);
    if (!p)
        fail_memory(r);
    return p;
}

const char *ptx_slice(struct ptx_reader *r, uint32_t start, uint32_t end)
{
    char *s = ptx_new(r, (size_t)(end - start) + 1);
    if (s)
        memcpy(s, r->lexer.text + start, end - start);
    return s;
}

void *ptx_list_add(struct ptx_reader *r, struct ptx_list *list, size_t item_bytes)
{
    if (list->count == list->capacity) {
        uint32_t capacity = (uint32_t)array_room(list->capacity, max(list->count + 1, 16u));
        /* The old and the new array may exist at the same time, so both are counted. */
        size_t bytes = (size_t)capacity * item_bytes;
        bool may = ptx_arena_charge(r->module->arena, bytes);
        void *items = may ? realloc(list->items, bytes) : NULL;
        if (!items) {
            fail_memory(r);
            return NULL;
        }
        ptx_arena_return(r->module->arena, list->bytes);
        list->bytes = bytes;
        list->items = items;
        list->capacity = capacity;
    }
    void *item = (char *)list->items + (size_t)list->count++ * item_bytes;
    return memset(item, 0, item_bytes);
}

void ptx_list_drop(struct ptx_reader *r, struct ptx_list *list)
{
    ptx_arena_return(r->module->arena, list->bytes);
    free(list->items);
    *list = (struct ptx_list){0};
}

void *ptx_list_keep(struct ptx_reader *r, struct ptx_list *list, size_t item_bytes)
{
    void *kept = ptx_new(r, list->count * item_bytes);
    if (kept && list->count)
        memcpy(kept, list->items, list->count * item_bytes);
    ptx_list_drop(r, list);
    return kept;
}

void ptx_scope_push(struct ptx_reader *r)
{
    uint32_t *parent = ptx_list_add(r, &r->scopes, sizeof(uint32_t));
    if (!parent)
        return;
    *parent = r->scope;
    r->scope = r->scopes.count - 1;
}

void ptx_scope_pop(struct ptx_reader *r)
{
    r->scope = ((uint32_t *)r->scopes.items)[r->scope];
}

/* The hash has a key, because the author of a text chooses its names. Thousands of names that
 * collide would keep the reader busy for hours. The scope comes last: a lookup in nested scopes
 * goes through the bytes of the name once. */
static uint64_t hash_name(const struct hash_key *key, const char *name, size_t length)
{
    return hash_add_bytes(key, hash_add(key, HASH_BEGIN, length), name, length);
}

static uint32_t hash_in_scope(const struct hash_key *key, uint64_t name, uint32_t scope)
{
    return (uint32_t)hash_end(key, hash_add(key, name, scope));
}

static struct ptx_name *find_slot(struct ptx_name *names, uint32_t capacity, const char *name,
                                  size_t length, uint32_t scope, uint32_t hash)
{
    for (uint32_t i = hash & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        struct ptx_name *n = &names[i];
        if (!n->name || (n->hash == hash && n->scope == scope && n->length == length &&
                         memcmp(n->name, name, length) == 0))
            return n;
    }
}

static bool grow_names(struct ptx_reader *r)
{
    uint32_t capacity = (uint32_t)array_room(r->name_capacity, max(r->name_capacity + 1, 256u));
    bool may = ptx_arena_charge(r->module->arena, capacity * sizeof(*r->names));
    struct ptx_name *names = may ? calloc(capacity, sizeof(*names)) : NULL;
    if (!names) {
        fail_memory(r);
        return false;
    }
    for (uint32_t i = 0; i < r->name_capacity; i++) {
        const struct ptx_name *n = &r->names[i];
        if (n->name)
            *find_slot(names, capacity, n->name, n->length, n->scope, n->hash) = *n;
    }
    ptx_arena_return(r->module->arena, r->name_capacity * sizeof(*names));
    free(r->names);
    r->names = names;
    r->name_capacity = capacity;
    return true;
}

struct ptx_name *ptx_declare(struct ptx_reader *r, const char *name, enum ptx_name_kind kind,
                             void *object, bool may_exist)
{
    if (!name || (r->name_count * 2 >= r->name_capacity && !grow_names(r)))
        return NULL;
    size_t length = strlen(name);
    uint32_t hash = hash_in_scope(&r->key, hash_name(&r->key, name, length), r->scope);
    struct ptx_name *n = find_slot(r->names, r->name_capacity, name, length, r->scope, hash);
    if (n->name) {
        if (!may_exist || n->kind != kind)
            ptx_fail(r, r->token.line, MESSAGE(ptx_declared_twice), name);
        return n;
    }
    *n = (struct ptx_name){name, (uint32_t)length, r->scope, hash, kind, object, 0};
    r->name_count++;
    return n;
}

struct ptx_name *ptx_lookup(struct ptx_reader *r, uint32_t scope, const char *name, size_t length,
                            unsigned kinds)
{
    if (!r->name_capacity)
        return NULL;
    uint64_t hashed = hash_name(&r->key, name, length);
    for (;; scope = ((uint32_t *)r->scopes.items)[scope]) {
        uint32_t hash = hash_in_scope(&r->key, hashed, scope);
        struct ptx_name *n = find_slot(r->names, r->name_capacity, name, length, scope, hash);
        if (n->name && (kinds & 1u << n->kind))
            return n;
        if (scope == 0)
            return NULL;
    }
}

void ptx_step(struct ptx_reader *r)
{
    /* A step takes a few microseconds at most, and 200 with the longest names in nested blocks. */
    enum { STEPS = 256 };
    struct error why;
    if (r->failed || ++r->steps % STEPS || !r->limits->ask)
        return;
    uint32_t ended = r->limits->ask(r->limits->context, &why);
    if (ended)
        ptx_fail(r, 0, ended, "%s", why.text);
}

void ptx_advance(struct ptx_reader *r)
{
    r->last_end = r->token.end;
    ptx_step(r);
    if (r->failed)
        return;
    r->token = ptx_lexer_next(&r->lexer);
    if (r->token.kind == PTX_TOKEN_BAD) {
        uint32_t n = r->token.end - r->token.start;
        ptx_fail(r, r->token.line, MESSAGE(ptx_token_unknown), (int)min(n, 40u),
                 r->lexer.text + r->token.start);
    } else if (r->token.kind == PTX_TOKEN_WORD && r->token.end - r->token.start > PTX_NAME_BYTES) {
        ptx_fail(r, r->token.line, MESSAGE(ptx_name_max), 40, r->lexer.text + r->token.start,
                 r->token.end - r->token.start, PTX_NAME_BYTES);
    }
}

bool ptx_at(const struct ptx_reader *r, char punct)
{
    return r->token.kind == PTX_TOKEN_PUNCT && r->lexer.text[r->token.start] == punct;
}

bool ptx_accept(struct ptx_reader *r, char punct)
{
    if (!ptx_at(r, punct))
        return false;
    ptx_advance(r);
    return true;
}

void ptx_unexpected(struct ptx_reader *r, enum ptx_wanted wanted)
{
#define NOUN(name, noun) [PTX_WANTED_##name] = (noun),
    static const char *const nouns[] = {MESSAGES_PTX_WANTED(NOUN)};
#undef NOUN
    uint32_t n = r->token.end - r->token.start;
    if (r->token.kind == PTX_TOKEN_END)
        ptx_fail(r, r->token.line, MESSAGE(ptx_text_ends), nouns[wanted]);
    else
        ptx_fail(r, r->token.line, MESSAGE(ptx_unexpected), (int)min(n, 60u),
                 r->lexer.text + r->token.start, nouns[wanted]);
}

void ptx_lacks(struct ptx_reader *r, char punct)
{
    uint32_t n = r->token.end - r->token.start;
    if (r->token.kind == PTX_TOKEN_END)
        ptx_fail(r, r->token.line, MESSAGE(ptx_text_ends_punct), punct);
    else
        ptx_fail(r, r->token.line, MESSAGE(ptx_unexpected_punct), (int)min(n, 60u),
                 r->lexer.text + r->token.start, punct);
}

void ptx_unknown_directive(struct ptx_reader *r)
{
    uint32_t n = r->token.end - r->token.start;
    ptx_fail(r, r->token.line, MESSAGE(ptx_directive_unknown), (int)min(n, 60u),
             r->lexer.text + r->token.start);
}

bool ptx_expect(struct ptx_reader *r, char punct)
{
    if (ptx_accept(r, punct))
        return true;
    ptx_lacks(r, punct);
    return false;
}

bool ptx_at_dot(const struct ptx_reader *r, const char *directive)
{
    size_t n = strlen(directive);
    return r->token.kind == PTX_TOKEN_DOT && r->token.end - r->token.start == n &&
           memcmp(r->lexer.text + r->token.start, directive, n) == 0;
}

bool ptx_accept_dot(struct ptx_reader *r, const char *directive)
{
    if (!ptx_at_dot(r, directive))
        return false;
    ptx_advance(r);
    return true;
}
