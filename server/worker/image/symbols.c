/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/symbols.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct variable {
    const char *name;
    uint64_t address, count;
};

struct kernel {
    const char *name;
    const uint32_t *pairs;
    uint32_t parameters;
    uint64_t end;
};

/* One piece of memory: this struct, then the tables, the pairs and the names. */
struct symbols {
    struct symbols_room room;
    size_t bytes;
    uint32_t variable_count, kernel_count;
    struct variable *variables;
    struct kernel *kernels;
    uint32_t *pairs; /* the next free pair */
    char *names;     /* the next free byte */
};

void symbols_room_variable(struct symbols_room *room, const char *name)
{
    room->variables++;
    room->name_bytes += strlen(name) + 1;
}

void symbols_room_kernel(struct symbols_room *room, const char *name, uint32_t parameters)
{
    room->kernels++;
    room->parameters += parameters;
    room->name_bytes += strlen(name) + 1;
}

struct symbols *symbols_create(const struct symbols_room *room)
{
    /* Each term is below 2^40, since a text has at most 1 GiB: the sum can't overflow. */
    size_t bytes = sizeof(struct symbols) + room->variables * sizeof(struct variable) +
                   room->kernels * sizeof(struct kernel) + room->parameters * 2 * sizeof(uint32_t) +
                   room->name_bytes;
    struct symbols *symbols = calloc(1, bytes);
    if (!symbols)
        return NULL;
    symbols->room = *room;
    symbols->bytes = bytes;
    symbols->variables = (void *)(symbols + 1);
    symbols->kernels = (void *)(symbols->variables + room->variables);
    symbols->pairs = (void *)(symbols->kernels + room->kernels);
    symbols->names = (void *)(symbols->pairs + 2 * (size_t)room->parameters);
    return symbols;
}

void symbols_free(struct symbols *symbols)
{
    free(symbols);
}

/* A pointer into one piece, as a pointer to the same place of the other. */
static void *move_pointer(const void *pointer, const struct symbols *from, struct symbols *to)
{
    return (char *)to + ((const char *)pointer - (const char *)from);
}

struct symbols *symbols_copy(const struct symbols *from, uint64_t further)
{
    struct symbols *symbols = malloc(from->bytes);
    if (!symbols)
        return NULL;
    memcpy(symbols, from, from->bytes);
    symbols->variables = move_pointer(from->variables, from, symbols);
    symbols->kernels = move_pointer(from->kernels, from, symbols);
    symbols->pairs = move_pointer(from->pairs, from, symbols);
    symbols->names = move_pointer(from->names, from, symbols);
    for (uint32_t i = 0; i < symbols->variable_count; i++) {
        symbols->variables[i].name = move_pointer(from->variables[i].name, from, symbols);
        symbols->variables[i].address += further;
    }
    for (uint32_t i = 0; i < symbols->kernel_count; i++) {
        symbols->kernels[i].name = move_pointer(from->kernels[i].name, from, symbols);
        symbols->kernels[i].pairs = move_pointer(from->kernels[i].pairs, from, symbols);
    }
    return symbols;
}

static const char *keep_name(struct symbols *symbols, const char *name)
{
    size_t bytes = strlen(name) + 1;
    char *kept = symbols->names;
    assert(bytes <= symbols->room.name_bytes);
    memcpy(kept, name, bytes);
    symbols->names += bytes;
    symbols->room.name_bytes -= bytes;
    return kept;
}

void symbols_add_variable(struct symbols *symbols, const char *name, uint64_t address,
                          uint64_t count)
{
    assert(symbols->variable_count < symbols->room.variables);
    symbols->variables[symbols->variable_count++] =
        (struct variable){.name = keep_name(symbols, name), .address = address, .count = count};
}

void symbols_add_kernel(struct symbols *symbols, const char *name, const uint32_t *pairs,
                        uint32_t parameters, uint64_t end)
{
    assert(symbols->kernel_count < symbols->room.kernels && parameters <= symbols->room.parameters);
    memcpy(symbols->pairs, pairs, parameters * 2 * sizeof *pairs);
    symbols->kernels[symbols->kernel_count++] = (struct kernel){.name = keep_name(symbols, name),
                                                                .pairs = symbols->pairs,
                                                                .parameters = parameters,
                                                                .end = end};
    symbols->pairs += 2 * (size_t)parameters;
    symbols->room.parameters -= parameters;
}

/* The items of both tables begin with their name. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void symbols_sort(struct symbols *symbols)
{
    qsort(symbols->variables, symbols->variable_count, sizeof *symbols->variables, by_name);
    qsort(symbols->kernels, symbols->kernel_count, sizeof *symbols->kernels, by_name);
}

bool symbols_variable(const struct symbols *symbols, const char *name, uint64_t *address,
                      uint64_t *count)
{
    const struct variable *found = bsearch(&name, symbols->variables, symbols->variable_count,
                                           sizeof *symbols->variables, by_name);
    if (!found)
        return false;
    *address = found->address;
    *count = found->count;
    return true;
}

bool symbols_kernel(const struct symbols *symbols, const char *name, uint32_t *pairs,
                    uint32_t *parameters, uint64_t *end)
{
    const struct kernel *found =
        bsearch(&name, symbols->kernels, symbols->kernel_count, sizeof *symbols->kernels, by_name);
    if (!found)
        return false;
    memcpy(pairs, found->pairs, found->parameters * 2 * sizeof *pairs);
    *parameters = found->parameters;
    *end = found->end;
    return true;
}

uint32_t symbols_kernel_count(const struct symbols *symbols)
{
    return symbols->kernel_count;
}

size_t symbols_bytes(const struct symbols *symbols)
{
    return symbols->bytes;
}
