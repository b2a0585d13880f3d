/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The names of all inputs, on which the other files stand. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cuda/link/ptx_merge_private.h"
#include "common/messages.h"
#include "common/util.h"

enum { SYMBOLS_MIN = 256 };

uint32_t merge_refuse_memory(struct error *why)
{
    return error_set(why, CUDA_ERR_OUT_OF_MEMORY, MESSAGE_TEXT(merge_no_memory));
}

static bool symbol_is(const struct merge_symbol *symbol, uint64_t hash, const char *name,
                      size_t length)
{
    return symbol->hash == hash && symbol->length == length &&
           memcmp(symbol->name, name, length) == 0;
}

static struct merge_symbol **find_slot(struct merge_symbol **table, uint32_t capacity,
                                       uint64_t hash, const char *name, size_t length)
{
    for (uint32_t i = (uint32_t)hash & (capacity - 1);; i = (i + 1) & (capacity - 1))
        if (!table[i] || symbol_is(table[i], hash, name, length))
            return &table[i];
}

static bool grow_table(struct ptx_merge *merge)
{
    uint32_t capacity = max(2 * merge->capacity, (uint32_t)SYMBOLS_MIN);
    struct merge_symbol **table = calloc(capacity, sizeof(struct merge_symbol *));
    if (!table)
        return false;
    for (uint32_t i = 0; i < merge->symbol_count; i++) {
        struct merge_symbol *symbol = merge->symbols[i];
        *find_slot(table, capacity, symbol->hash, symbol->name, symbol->length) = symbol;
    }
    free(merge->table);
    merge->table = table;
    merge->capacity = capacity;
    return true;
}

/* A symbol outlives a candidate that is dropped, so it has the name for itself. */
static struct merge_symbol *make_symbol(const char *name, size_t length, uint64_t hash)
{
    struct merge_symbol *symbol = calloc(1, sizeof *symbol + length + 1);
    if (!symbol)
        return NULL;
    char *copy = (char *)(symbol + 1);
    memcpy(copy, name, length);
    symbol->name = copy;
    symbol->length = length;
    symbol->hash = hash;
    return symbol;
}

struct merge_symbol *merge_intern(struct ptx_merge *merge, const char *name)
{
    size_t length = strlen(name);
    uint64_t hash =
        hash_end(&merge->key, hash_add_bytes(&merge->key, hash_add(&merge->key, HASH_BEGIN, length),
                                             name, length));
    if (merge->symbol_count * 2 >= merge->capacity && !grow_table(merge))
        return NULL;
    struct merge_symbol **slot = find_slot(merge->table, merge->capacity, hash, name, length);
    if (!*slot) {
        if (array_reserve(merge->symbols, merge->symbol_room, merge->symbol_count + 1) < 0 ||
            !(*slot = make_symbol(name, length, hash)))
            return NULL;
        merge->symbols[merge->symbol_count++] = *slot;
    }
    if ((*slot)->stamp != merge->stamp) {
        (*slot)->stamp = merge->stamp;
        (*slot)->claim = (struct merge_claim){0};
    }
    return *slot;
}

/* The functions are the system calls of NVIDIA's "PTX Writer's Guide to Interoperability", and the
 * one that nvcc makes of __nv_aligned_device_malloc. An array of shared memory whose size a launch
 * says has its place without a definition. */
bool merge_is_provided(const struct merge_place *place)
{
    static const char *const functions[] = {"vprintf", "malloc", "__cuda_syscall_aligned_malloc",
                                            "free", "__assertfail"};
    if (place->variable)
        return place->variable->space == PTX_SPACE_SHARED && place->variable->bytes == 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(place->function->name, functions[i]) == 0)
            return true;
    return false;
}

bool merge_is_changed(const struct merge_input *input, const struct merge_name *name)
{
    return name->symbol && name->own && (name->symbol->inputs > 0 || name->symbol->owner != input);
}

struct merge_place merge_find_variable(const struct merge_input *input,
                                       const struct ptx_variable *variable)
{
    const struct merge_name *name = &input->variables[variable->id];
    if (!name->symbol)
        return (struct merge_place){0};
    if (name->own)
        return (struct merge_place){.input = input, .variable = variable};
    return name->symbol->definition;
}
