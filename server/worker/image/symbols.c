/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/symbols.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Places of names and pairs are bytes from the begin of the piece, so that a copy of its bytes is a
 * copy of the symbols, in another process too. */
struct variable {
    uint64_t name, address, count;
};

struct kernel {
    uint64_t name, pairs, end;
    uint32_t parameters;
};

/* One piece of memory: this struct, then the tables, the pairs and the names. */
struct symbols {
    struct symbols_room room;
    uint64_t bytes;
    uint32_t variable_count, kernel_count;
    uint64_t next_pair, next_name; /* places of what is free */
};

static struct variable *variables_of(const struct symbols *symbols)
{
    return (void *)(uintptr_t)(symbols + 1);
}

static struct kernel *kernels_of(const struct symbols *symbols)
{
    return (void *)(variables_of(symbols) + symbols->room.variables);
}

static void *at_place(const struct symbols *symbols, uint64_t place)
{
    return (char *)(uintptr_t)symbols + place;
}

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
    size_t pairs = sizeof(struct symbols) + room->variables * sizeof(struct variable) +
                   room->kernels * sizeof(struct kernel);
    size_t names = pairs + room->parameters * 2 * sizeof(uint32_t);
    struct symbols *symbols = calloc(1, names + room->name_bytes);
    if (symbols)
        *symbols = (struct symbols){.room = *room,
                                    .bytes = names + room->name_bytes,
                                    .next_pair = pairs,
                                    .next_name = names};
    return symbols;
}

void symbols_free(struct symbols *symbols)
{
    free(symbols);
}

struct symbols *symbols_copy(const struct symbols *from, uint64_t further)
{
    struct symbols *symbols = malloc(from->bytes);
    if (!symbols)
        return NULL;
    memcpy(symbols, from, from->bytes);
    for (uint32_t i = 0; i < symbols->variable_count; i++)
        variables_of(symbols)[i].address += further;
    return symbols;
}

struct symbols *symbols_restore(const void *bytes, size_t count)
{
    struct symbols head;
    if (count < sizeof head)
        return NULL;
    memcpy(&head, bytes, sizeof head);
    struct symbols *symbols = head.bytes == count ? malloc(count) : NULL;
    return symbols ? memcpy(symbols, bytes, count) : NULL;
}

static uint64_t keep_name(struct symbols *symbols, const char *name)
{
    size_t bytes = strlen(name) + 1;
    uint64_t kept = symbols->next_name;
    assert(bytes <= symbols->bytes - kept);
    memcpy(at_place(symbols, kept), name, bytes);
    symbols->next_name += bytes;
    return kept;
}

void symbols_add_variable(struct symbols *symbols, const char *name, uint64_t address,
                          uint64_t count)
{
    assert(symbols->variable_count < symbols->room.variables);
    variables_of(symbols)[symbols->variable_count++] =
        (struct variable){.name = keep_name(symbols, name), .address = address, .count = count};
}

void symbols_add_kernel(struct symbols *symbols, const char *name, const uint32_t *pairs,
                        uint32_t parameters, uint64_t end)
{
    assert(symbols->kernel_count < symbols->room.kernels && parameters <= symbols->room.parameters);
    size_t bytes = parameters * 2 * sizeof *pairs;
    memcpy(at_place(symbols, symbols->next_pair), pairs, bytes);
    kernels_of(symbols)[symbols->kernel_count++] = (struct kernel){.name = keep_name(symbols, name),
                                                                   .pairs = symbols->next_pair,
                                                                   .parameters = parameters,
                                                                   .end = end};
    symbols->next_pair += bytes;
}

/* The items of both tables begin with the place of their name. */
static int by_name(const void *a, const void *b, void *symbols)
{
    return strcmp(at_place(symbols, *(const uint64_t *)a), at_place(symbols, *(const uint64_t *)b));
}

void symbols_sort(struct symbols *symbols)
{
    qsort_r(variables_of(symbols), symbols->variable_count, sizeof(struct variable), by_name,
            symbols);
    qsort_r(kernels_of(symbols), symbols->kernel_count, sizeof(struct kernel), by_name, symbols);
}

/* A name that is looked for. */
struct wanted {
    const struct symbols *symbols;
    const char *name;
};

static int is_wanted(const void *key, const void *item)
{
    const struct wanted *wanted = key;
    return strcmp(wanted->name, at_place(wanted->symbols, *(const uint64_t *)item));
}

bool symbols_variable(const struct symbols *symbols, const char *name, uint64_t *address,
                      uint64_t *count)
{
    const struct wanted wanted = {symbols, name};
    const struct variable *found =
        bsearch(&wanted, variables_of(symbols), symbols->variable_count, sizeof *found, is_wanted);
    if (!found)
        return false;
    *address = found->address;
    *count = found->count;
    return true;
}

bool symbols_kernel(const struct symbols *symbols, const char *name, uint32_t *pairs,
                    uint32_t *parameters, uint64_t *end)
{
    const struct wanted wanted = {symbols, name};
    const struct kernel *found =
        bsearch(&wanted, kernels_of(symbols), symbols->kernel_count, sizeof *found, is_wanted);
    if (!found)
        return false;
    memcpy(pairs, at_place(symbols, found->pairs), found->parameters * 2 * sizeof *pairs);
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
