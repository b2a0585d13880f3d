/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory_extent: the list of extents, which says what lies where in the address space, and the
 * deferred unmapping of their pages. memory_map.c, memory_alloc.c and memory_heap.c include it. All
 * calls are made between memory_change_begin() and memory_change_end().
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_EXTENT_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "server/softgpu/memory/charges.h"
#include "server/softgpu/memory/memory.h"
#include "server/softgpu/memory/memory_table.h"
#include "server/softgpu/softgpu_settings.h"

struct handle;

enum extent_kind { RESERVATION, MAPPING, ALLOCATION, HOST_REGISTERED, HOST_ALLOCATED };

struct extent {
    struct list_link link;
    enum extent_kind kind;
    uint64_t base, size;
    struct handle *handle; /* MAPPING */
    bool live;       /* MAPPING: it has a range in the table, since its access was first set */
    unsigned device; /* ALLOCATION */
    uint64_t charged_bytes; /* ALLOCATION */
    bool programs;          /* ALLOCATION: it is a program's */
};

/* The arguments of memory_start(). */
const struct softgpu_settings *memory_settings(void);
struct charges *memory_charges(void);

/* memory_extent_at: the extent of this kind that begins at base. memory_extent_around: the one that
 * holds a whole range. NULL if there is none. memory_extent_overlaps: whether any extent of this
 * kind overlaps a range. */
struct extent *memory_extent_at(enum extent_kind kind, uint64_t base);
struct extent *memory_extent_around(enum extent_kind kind, uint64_t base, uint64_t size);
bool memory_extent_overlaps(enum extent_kind kind, uint64_t base, uint64_t size);
/* An extent of this kind, and of this device if it is an allocation of a program's. */
struct extent *memory_extent_any(enum extent_kind kind, unsigned device);
/* Adds an extent. Returns NULL without memory. */
struct extent *memory_extent_add(enum extent_kind kind, uint64_t base, uint64_t size);
void memory_extent_remove(struct extent *extent);

/*
 * Gives up pages that are not live any more, as soon as no thread can be touching them.
 * keep_reserved: they become an inaccessible reservation again; otherwise they are unmapped.
 */
void memory_extent_defer_drop(uint64_t base, uint64_t size, bool keep_reserved);
/* Waits until all pages that were given up in the range are gone. */
void memory_extent_flush_deferred(uint64_t base, uint64_t size);

static inline void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline uint64_t address_of(const void *ptr)
{
    return (uintptr_t)ptr;
}

#endif
