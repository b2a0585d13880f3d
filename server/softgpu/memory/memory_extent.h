/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory_extent: the list of extents (what stands where in the address space) and
 * the late unmapping of their pages, shared by memory_map.c and memory_alloc.c.
 * Nobody else includes this. Between memory_change_begin() and _end() throughout.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_EXTENT_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "server/softgpu/memory/ledger.h"
#include "server/softgpu/memory/memory.h"
#include "server/softgpu/memory/memory_table.h"
#include "server/softgpu/softgpu_settings.h"

struct handle;

enum extent_kind { RESERVATION, MAPPING, ALLOCATION, HOST_REGISTERED, HOST_ALLOCATED };

struct extent {
    struct list_link link;
    enum extent_kind kind;
    uint64_t base, size;
    struct handle *handle;  /* MAPPING */
    bool live;              /* MAPPING: has a range in the table, since its first access was set */
    unsigned device;        /* ALLOCATION */
    uint64_t charged_bytes; /* ALLOCATION */
};

/* As given to memory_start(). */
const struct softgpu_settings *memory_settings(void);
struct ledger *memory_ledger(void);

/* The extent of a kind that begins at base; that holds all of a range. NULL if there is none. */
struct extent *extent_at(enum extent_kind kind, uint64_t base);
struct extent *extent_around(enum extent_kind kind, uint64_t base, uint64_t size);
bool extent_overlaps(enum extent_kind kind, uint64_t base, uint64_t size);
/* NULL when memory is short. */
struct extent *extent_add(enum extent_kind kind, uint64_t base, uint64_t size);
void extent_remove(struct extent *extent);

/*
 * Gives pages up that are no longer live, once no thread can be touching them:
 * back to an inaccessible reservation, or to the system.
 */
void defer_drop(uint64_t base, uint64_t size, bool keep_reserved);
/* Everything given up in the range is gone on return. */
void deferred_flush(uint64_t base, uint64_t size);

static inline void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline uint64_t address_of(const void *ptr)
{
    return (uintptr_t)ptr;
}

#endif
