/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * heap: which allocation lies where in one client's device window.
 *
 * Regions are physical memory: one handle each. A slab is cut into blocks for many
 * small allocations; any other region is one block. The heap only decides: its
 * owner asks the worker for memory, charges it, and keeps the descriptors (the
 * members held_fd and charge of a region are the owner's).
 *
 * Free memory of slabs is found by size class in constant time (two levels, eight
 * classes a power of two), and so is a block by its address: a client with a
 * hundred thousand allocations costs the loop no more than one with ten.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_HEAP_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/account/fd_budget.h"
#include "server/supervisor/account/quota.h"

#define HEAP_ALIGNMENT   UINT64_C(512)
#define HEAP_SLAB_MIN    (UINT64_C(2) << 20)
#define HEAP_SLAB_MAX    (UINT64_C(64) << 20)
#define HEAP_SMALL_BELOW (UINT64_C(1) << 20) /* from here on, a handle of its own */

/* 2^39 units of 512 bytes: more than an arena has. */
#define HEAP_LEVELS  40
#define HEAP_CLASSES 8

enum heap_region_state {
    HEAP_REGION_MAPPING,  /* asked for; holds its addresses */
    HEAP_REGION_LIVE,     /* memory */
    HEAP_REGION_UNMAPPING /* its blocks are gone; still holds its addresses and its charge */
};

struct heap_block;

struct heap_region {
    struct heap *heap;
    uint64_t address;
    uint64_t bytes;
    bool slab;
    enum heap_region_state state;
    struct heap_block *first;            /* blocks by address; one, not to be used, while mapping */
    struct heap_region *previous, *next; /* by address */
    struct charge charge;
    struct held_fd held_fd;
    void *user;      /* the owner's: the request that waits for it */
    uint32_t shares; /* the owner's: other connections that use it */
    bool gone;       /* the owner's: its worker has unmapped it */
};

enum heap_block_state { HEAP_BLOCK_FREE, HEAP_BLOCK_USED, HEAP_BLOCK_RETIRED };

struct heap_block {
    uint64_t address;
    uint64_t bytes;
    enum heap_block_state state;
    bool reserved; /* the owner's: not for the client to free */
    struct heap_region *region;
    struct heap_block *before, *after;  /* neighbours in the region */
    struct heap_block *previous, *next; /* FREE: of its class; RETIRED: the owner's */
    struct heap_block *bucket_next;     /* USED */
};

struct heap {
    uint64_t base;
    uint64_t bytes;
    uint64_t granularity;
    struct heap_region *first;
    uint32_t regions;
    uint32_t mapping;                     /* slabs that are being mapped */
    uint64_t next_slab;                   /* size of the next slab, if the limits allow */
    uint64_t used_blocks, retired_blocks; /* retired: not free yet */
    uint64_t level_map;
    uint8_t class_map[HEAP_LEVELS];
    struct heap_block *free[HEAP_LEVELS][HEAP_CLASSES];
    struct heap_block **buckets;
    uint64_t bucket_count; /* a power of two */
};

enum { HEAP_FULL = 1 };

/* base and bytes: the window; granularity: of device memory. Returns 0, -EINVAL, -ENOMEM. */
int heap_open(struct heap *heap, uint64_t base, uint64_t bytes, uint64_t granularity);

/* Asserts that no region is left. Idempotent. */
void heap_close(struct heap *heap);

/* count rounded up to HEAP_ALIGNMENT; 0 if that overflows or count is 0. */
uint64_t heap_round(uint64_t count);

/* count rounded up to the granularity; 0 if that overflows or count is 0. */
uint64_t heap_round_region(const struct heap *heap, uint64_t count);

/*
 * Takes a block of count (rounded by heap_round) bytes from live slabs.
 * Returns 0, HEAP_FULL, or -ENOMEM (this process).
 */
int heap_take(struct heap *heap, uint64_t count, struct heap_block **block);

/*
 * Finds addresses for a region (a multiple of the granularity); it is mapping then.
 * Returns 0, HEAP_FULL, or -ENOMEM.
 */
int heap_region_add(struct heap *heap, uint64_t bytes, bool slab, struct heap_region **region);

/*
 * The region is memory now. A slab's space can be taken, and NULL is returned;
 * another region's one block is returned, used.
 */
struct heap_block *heap_region_ready(struct heap_region *region);

/* Forgets all blocks of a live region, used and retired ones too; their pointers are dead then. */
void heap_region_clear(struct heap_region *region);

/* No block of it is used any more: withdraws its space; it is unmapping then. */
void heap_region_withdraw(struct heap_region *region);

/* Gives its addresses back and frees it. It is not live, its charge and descriptor are gone. */
void heap_region_remove(struct heap_region *region);

/* The used block that begins at this address, or NULL. */
struct heap_block *heap_find(const struct heap *heap, uint64_t address);

/* The block is not found any more; its memory is not reused before heap_block_reclaim. */
void heap_block_retire(struct heap_block *block);

/*
 * A retired block becomes free, joined with free neighbours; the pointer is dead
 * then. Returns its region if nothing in it is used or retired, else NULL.
 */
struct heap_region *heap_block_reclaim(struct heap_block *block);

#endif
