/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * heap: which allocation lies where in one client's window.
 *
 * A region is physical memory with one handle. A slab is a region that is cut into blocks for many
 * small allocations; any other region is one block. The heap only decides: its owner asks the
 * worker for memory, charges it, and keeps the descriptors. The members charged_fd and charge of a
 * region belong to the owner.
 *
 * Regions, and the blocks of slabs that are not free, have rows of tables that the owner keeps
 * (keep/kept_table.h). The functions here mark them.
 *
 * Free memory of slabs is found by its size class in constant time (two levels, eight classes for
 * each power of two), and a block is found by its address in constant time too. So a client with a
 * hundred thousand allocations costs the loop no more than a client with ten. One thread at a time.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_HEAP_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/account/fd_budget.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/keep/kept_table.h"

#define HEAP_ALIGNMENT   UINT64_C(512)       /* at least what modules' variables need */
#define HEAP_SLAB_MIN    (UINT64_C(2) << 20) /* the granularity of NVIDIA's devices */
#define HEAP_SLAB_MAX    (UINT64_C(64) << 20)
#define HEAP_SMALL_BELOW (UINT64_C(1) << 20) /* bytes; from here on an allocation has a region */

/* 2^39 units of 512 bytes: more than an arena has. */
#define HEAP_LEVELS  40
#define HEAP_CLASSES 8

enum heap_region_state {
    HEAP_REGION_MAPPING,  /* the worker was asked to map it; it holds its addresses */
    HEAP_REGION_LIVE,     /* it is memory */
    HEAP_REGION_UNMAPPING /* its blocks are gone; it still holds its addresses and its charge */
};

struct heap_block;

struct heap_region {
    struct heap *heap;
    uint64_t address;
    uint64_t bytes;
    bool slab;
    enum heap_region_state state;
    struct heap_block *first; /* blocks by address; while mapping: one that must not be used */
    /* In the order of addresses. An insertion walks to its place with the region before it, so this
     * is no list.h. */
    struct heap_region *previous, *next;
    struct charge charge;
    struct charged_fd charged_fd;
    void *user;       /* the owner's: what waits for the region */
    uint32_t imports; /* the owner's: number of other connections that use it */
    bool gone;        /* the owner's: its worker has unmapped it */
    uint32_t kept;    /* the owner's: number of the descriptor (keep/keeper.h) */
    uint32_t row;     /* of kept_regions */
    uint32_t used;    /* blocks of a live region that are not free */
    uint32_t idle;    /* the owner's: how many of these its client keeps idle, as it last counted */
};

enum heap_block_state { HEAP_BLOCK_FREE, HEAP_BLOCK_USED, HEAP_BLOCK_RETIRED };

/* The links are no list.h: `free` and `buckets` hold thousands of heads, each a single pointer, and
 * a walk over neighbours needs NULL at both ends. */
struct heap_block {
    uint64_t address;
    uint64_t bytes;
    enum heap_block_state state;
    bool reserved; /* while it is used: the client must not free it */
    uint32_t row;  /* of kept_blocks; 0: it is free, or its region's only one */
    struct heap_region *region;
    struct heap_block *before, *after;  /* neighbours in the region */
    struct heap_block *previous, *next; /* FREE: of its size class; RETIRED: the owner's */
    struct heap_block *bucket_next;     /* USED: of its bucket */
};

struct heap {
    uint64_t base;
    uint64_t bytes;
    uint64_t granularity;
    struct heap_region *first;
    uint32_t regions;
    uint32_t mapping;                     /* number of slabs that are being mapped */
    uint64_t next_slab;                   /* size of the next slab, if the limits allow it */
    uint64_t used_blocks, retired_blocks; /* retired blocks are not free yet */
    uint64_t level_map;
    uint8_t class_map[HEAP_LEVELS];
    struct heap_block *free[HEAP_LEVELS][HEAP_CLASSES];
    struct heap_block **buckets;
    uint64_t bucket_count;                         /* a power of two */
    struct kept_table *kept_regions, *kept_blocks; /* the owner's, set after heap_open; or NULL */
    bool from_end; /* the owner's, set after heap_open: regions fill the window from its end */
};

enum { HEAP_FULL = 1 };

/* Makes an empty heap for the window at base. granularity is that of the window's memory, in bytes.
 * Returns 0, -EINVAL or -ENOMEM. */
int heap_open(struct heap *heap, uint64_t base, uint64_t bytes, uint64_t granularity);

/* Every region must have been removed; an assertion checks that. Idempotent. */
void heap_close(struct heap *heap);

/* count rounded up to HEAP_ALIGNMENT; 0 if that overflows or count is 0. */
uint64_t heap_round(uint64_t count);

/* count rounded up to the granularity; 0 if that overflows or count is 0. */
uint64_t heap_round_region(const struct heap *heap, uint64_t count);

/*
 * Takes a block of count bytes, rounded by heap_round, from live slabs; its state is then used.
 * Returns 0; HEAP_FULL; or -ENOMEM if this process has no memory.
 */
int heap_take(struct heap *heap, uint64_t count, struct heap_block **block);

/*
 * Finds addresses for a region, whose size is a multiple of the granularity. The region is in state
 * MAPPING then. Returns 0, HEAP_FULL or -ENOMEM.
 */
int heap_region_add(struct heap *heap, uint64_t bytes, bool slab, struct heap_region **region);

/*
 * The region is memory now. Returns NULL for a slab, whose space can be taken from now on; for
 * another region its one block, in state used.
 */
struct heap_block *heap_region_ready(struct heap_region *region);

/* Forgets all blocks of a live region, used and retired ones too; pointers to them are invalid
 * afterwards. heap_region_withdraw must follow. */
void heap_region_clear(struct heap_region *region);

/* Withdraws the space of a live region that has no used block. The region is in state UNMAPPING
 * then. */
void heap_region_withdraw(struct heap_region *region);

/* The region is in state MAPPING again, after UNMAPPING: its memory stays, for another use. Returns
 * 0 or -ENOMEM. */
int heap_region_again(struct heap_region *region);

/* Puts a region where it was before, in state MAPPING, as heap_region_add does. Returns 0; -ENOMEM;
 * or -EINVAL: it does not fit there. */
int heap_region_put(struct heap *heap, uint64_t address, uint64_t bytes, bool slab,
                    struct heap_region **region);

/* Takes the block [address, address + bytes) out of a live slab, as heap_take does. It is looked
 * for behind `from`, a block of the slab; NULL: from the beginning on. Returns 0; -ENOMEM; or
 * -EINVAL: not all of that is free, or it is no whole number of HEAP_ALIGNMENT. */
int heap_take_at(struct heap_region *region, struct heap_block *from, uint64_t address,
                 uint64_t bytes, struct heap_block **block);

/* Moves all of a heap into a struct that is no heap. *from is none afterwards, and nothing of the
 * heap is kept any more. */
void heap_move(struct heap *from, struct heap *to);

/* Gives a region's addresses back and frees it. The region is not live, and the owner has given
 * back its charge and its descriptor. */
void heap_region_remove(struct heap_region *region);

/* The used block that begins at this address, or NULL. */
struct heap_block *heap_find(const struct heap *heap, uint64_t address);

/* The owner has changed its members of a region that are kept. */
void heap_region_mark(struct heap_region *region);

/* The client must not free this used block. */
void heap_block_reserve(struct heap_block *block);

/* The client freed a used block. It can't be found any more; its memory is not used again before
 * heap_block_reclaim. */
void heap_block_retire(struct heap_block *block);

/*
 * Makes a retired block free and joins it with free neighbours; the pointer is invalid afterwards.
 * Returns the block's region if no block in it is used or retired any more, else NULL.
 */
struct heap_region *heap_block_reclaim(struct heap_block *block);

#endif
