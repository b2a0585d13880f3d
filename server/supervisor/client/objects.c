/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/client/objects.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "protocol.h"

/* Buckets for kernels' names, a power of two: 64 names in each if a client has all that it may. */
#define BUCKETS 1024

void objects_open(struct objects *objects, uint32_t streams, const struct hash_key *key,
                  struct kept_table *kept)
{
    *objects = (struct objects){.key = key, .kept = kept};
    objects->tables[OBJECT_STREAM].max = streams - 1;
    objects->tables[OBJECT_EVENT].max = PROTO_EVENTS_MAX;
    objects->tables[OBJECT_FUNCTION].max = PROTO_FUNCTIONS_MAX;
    objects->tables[OBJECT_LINK].max = PROTO_LINKS_MAX;
}

void objects_close(struct objects *objects)
{
    const struct object_table *functions = &objects->tables[OBJECT_FUNCTION];
    for (uint32_t i = 0; i < functions->count; i++)
        if (functions->rows[i].state != OBJECT_FREE)
            free(functions->rows[i].function.name);
    for (int kind = 0; kind < OBJECT_KINDS; kind++)
        free(objects->tables[kind].rows);
    free(objects->buckets);
    *objects = (struct objects){.key = NULL};
}

static void mark(const struct objects *objects, enum object_kind kind, uint32_t number)
{
    if (objects->kept)
        kept_table_mark(&objects->kept[kind], number);
}

int objects_new(struct objects *objects, enum object_kind kind, uint32_t *number)
{
    struct object_table *table = &objects->tables[kind];
    uint32_t row = table->low;
    while (row < table->count && table->rows[row].state != OBJECT_FREE)
        row++;
    if (row >= table->max)
        return -ENOSPC;
    if (row == table->count) {
        if (array_reserve(table->rows, table->room, table->count + 1) < 0)
            return -ENOMEM;
        table->count++;
    }
    table->rows[row] = (struct object){.state = OBJECT_MAKING};
    table->low = row + 1;
    table->used++;
    *number = row + 1;
    mark(objects, kind, *number);
    return 0;
}

int objects_put(struct objects *objects, enum object_kind kind, uint32_t number)
{
    struct object_table *table = &objects->tables[kind];
    if (!number || number > table->max || objects_find(objects, kind, number))
        return -EINVAL;
    if (array_reserve(table->rows, table->room, number) < 0)
        return -ENOMEM;
    for (; table->count < number; table->count++)
        table->rows[table->count] = (struct object){.state = OBJECT_FREE};
    table->rows[number - 1] = (struct object){.state = OBJECT_MAKING};
    table->used++;
    mark(objects, kind, number);
    return 0;
}

const struct object *objects_find(const struct objects *objects, enum object_kind kind,
                                  uint32_t number)
{
    const struct object_table *table = &objects->tables[kind];
    if (number - 1 >= table->count || table->rows[number - 1].state == OBJECT_FREE)
        return NULL;
    return &table->rows[number - 1];
}

struct object *objects_change(struct objects *objects, enum object_kind kind, uint32_t number)
{
    if (!objects_find(objects, kind, number))
        return NULL;
    mark(objects, kind, number);
    return &objects->tables[kind].rows[number - 1];
}

static void function_forget(struct objects *objects, uint32_t number)
{
    struct object *rows = objects->tables[OBJECT_FUNCTION].rows;
    struct object_function *gone = &rows[number - 1].function;
    uint32_t *link = &objects->buckets[gone->hash % BUCKETS];
    while (*link != number)
        link = &rows[*link - 1].function.next;
    *link = gone->next;
    free(gone->name);
}

void objects_free(struct objects *objects, enum object_kind kind, uint32_t number)
{
    struct object_table *table = &objects->tables[kind];
    assert(objects_find(objects, kind, number));
    if (kind == OBJECT_FUNCTION)
        function_forget(objects, number);
    table->rows[number - 1].state = OBJECT_FREE;
    mark(objects, kind, number);
    table->used--;
    if (number - 1 < table->low)
        table->low = number - 1;
}

/* ---- kernels ---- */

static uint64_t function_hash(const struct objects *objects, uint32_t module, const void *name,
                              size_t name_bytes)
{
    uint64_t hash = hash_add(objects->key, HASH_BEGIN, name_bytes);
    hash = hash_add(objects->key, hash, module);
    hash = hash_add_bytes(objects->key, hash, name, name_bytes);
    return hash_end(objects->key, hash);
}

/* *number: 0, or the one that it gets. */
static int function_make(struct objects *objects, uint32_t module, const void *name,
                         size_t name_bytes, uint32_t *number)
{
    if (!objects->buckets)
        objects->buckets = calloc(BUCKETS, sizeof *objects->buckets);
    char *copy = malloc(name_bytes + 1);
    int result = -ENOMEM;
    if (objects->buckets && copy)
        result = *number ? objects_put(objects, OBJECT_FUNCTION, *number)
                         : objects_new(objects, OBJECT_FUNCTION, number);
    if (result < 0) {
        free(copy);
        return result;
    }
    memcpy(copy, name, name_bytes);
    uint64_t hash = function_hash(objects, module, name, name_bytes);
    uint32_t *bucket = &objects->buckets[hash % BUCKETS];
    objects->tables[OBJECT_FUNCTION].rows[*number - 1].function =
        (struct object_function){.module = module,
                                 .next = *bucket,
                                 .hash = hash,
                                 .name_bytes = (uint32_t)name_bytes,
                                 .name = copy};
    *bucket = *number;
    return 0;
}

int objects_function_new(struct objects *objects, uint32_t module, const void *name,
                         size_t name_bytes, uint32_t *number)
{
    *number = 0;
    return function_make(objects, module, name, name_bytes, number);
}

int objects_function_put(struct objects *objects, uint32_t module, const void *name,
                         size_t name_bytes, uint32_t number)
{
    return number ? function_make(objects, module, name, name_bytes, &number) : -EINVAL;
}

uint32_t objects_function_find(const struct objects *objects, uint32_t module, const void *name,
                               size_t name_bytes)
{
    if (!objects->buckets)
        return 0;
    const struct object *rows = objects->tables[OBJECT_FUNCTION].rows;
    uint64_t hash = function_hash(objects, module, name, name_bytes);
    uint32_t number = objects->buckets[hash % BUCKETS];
    for (; number; number = rows[number - 1].function.next) {
        const struct object_function *known = &rows[number - 1].function;
        if (known->hash == hash && known->module == module && known->name_bytes == name_bytes &&
            memcmp(known->name, name, name_bytes) == 0)
            break;
    }
    return number;
}

void objects_function_ask(struct objects *objects, uint32_t number)
{
    objects->tables[OBJECT_FUNCTION].rows[number - 1].function.asking++;
}

void objects_function_told(struct objects *objects, uint32_t number)
{
    objects->tables[OBJECT_FUNCTION].rows[number - 1].function.asking--;
}

void objects_unload(struct objects *objects, uint32_t module)
{
    const struct object_table *table = &objects->tables[OBJECT_FUNCTION];
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].state != OBJECT_FREE && table->rows[i].function.module == module)
            objects_free(objects, OBJECT_FUNCTION, i + 1);
}
