/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 64u
#define LOOKS_MAX   256u

int heap_open(struct heap *heap, uint64_t base, uint64_t bytes, uint64_t granularity)
{
    memset(heap, 0, sizeof *heap);
    if (!granularity || (granularity & (granularity - 1)) || granularity < HEAP_ALIGNMENT ||
        base % granularity || bytes % granularity || !bytes || base + bytes < base)
        return -EINVAL;
    heap->buckets = calloc(BUCKETS_MIN, sizeof(struct heap_block *));
    if (!heap->buckets)
        return -ENOMEM;
    heap->bucket_count = BUCKETS_MIN;
    heap->base = base;
    heap->bytes = bytes;
    heap->granularity = granularity;
    heap->next_slab = heap_round_region(heap, HEAP_SLAB_MIN);
    return 0;
}

void heap_close(struct heap *heap)
{
    assert(heap->regions == 0 && heap->used_blocks == 0 && heap->retired_blocks == 0 &&
           heap->level_map == 0);
    free(heap->buckets);
    memset(heap, 0, sizeof *heap);
}

static uint64_t round_up(uint64_t count, uint64_t unit)
{
    return count > UINT64_MAX - (unit - 1) ? 0 : (count + unit - 1) & ~(unit - 1);
}

uint64_t heap_round(uint64_t count)
{
    return round_up(count, HEAP_ALIGNMENT);
}

uint64_t heap_round_region(const struct heap *heap, uint64_t count)
{
    return round_up(count, heap->granularity);
}

/* ---- free blocks by size class ---- */

struct size_class {
    unsigned level, class;
};

/* The class that a block of this size belongs to. */
static struct size_class class_of(uint64_t bytes)
{
    uint64_t units = bytes / HEAP_ALIGNMENT;
    unsigned level = 63u - (unsigned)__builtin_clzll(units);
    if (level < 3) /* fewer units than classes: each size has a class of its own */
        return (struct size_class){0, (unsigned)units};
    return (struct size_class){level - 2, (unsigned)((units >> (level - 3)) & 7)};
}

/* The smallest class in which every block is at least this large. */
static struct size_class class_above(uint64_t bytes)
{
    uint64_t units = bytes / HEAP_ALIGNMENT;
    unsigned level = 63u - (unsigned)__builtin_clzll(units);
    if (level >= 3)
        units += (UINT64_C(1) << (level - 3)) - 1;
    return class_of(units * HEAP_ALIGNMENT);
}

static void insert_free(struct heap *heap, struct heap_block *block)
{
    struct size_class at = class_of(block->bytes);
    struct heap_block **head = &heap->free[at.level][at.class];
    block->state = HEAP_BLOCK_FREE;
    block->previous = NULL;
    block->next = *head;
    if (*head)
        (*head)->previous = block;
    *head = block;
    heap->class_map[at.level] |= (uint8_t)(1u << at.class);
    heap->level_map |= UINT64_C(1) << at.level;
}

static void remove_free(struct heap *heap, struct heap_block *block)
{
    struct size_class at = class_of(block->bytes);
    struct heap_block **head = &heap->free[at.level][at.class];
    if (block->previous)
        block->previous->next = block->next;
    else
        *head = block->next;
    if (block->next)
        block->next->previous = block->previous;
    block->previous = block->next = NULL;
    if (*head)
        return;
    heap->class_map[at.level] &= (uint8_t) ~(1u << at.class);
    if (!heap->class_map[at.level])
        heap->level_map &= ~(UINT64_C(1) << at.level);
}

static struct heap_block *find_free(const struct heap *heap, uint64_t bytes)
{
    struct size_class at = class_above(bytes);
    if (at.level >= HEAP_LEVELS)
        return NULL;
    unsigned classes = heap->class_map[at.level] & (0xffu << at.class);
    if (!classes) {
        uint64_t levels = heap->level_map & ~((UINT64_C(2) << at.level) - 1);
        if (levels) {
            at.level = (unsigned)__builtin_ctzll(levels);
            classes = heap->class_map[at.level];
        }
    }
    if (classes)
        return heap->free[at.level][__builtin_ctz(classes)];
    /* The last resort before a refusal: a block of the same class may still be large enough. Only
     * LOOKS_MAX blocks are looked at, since a client can make very many that are not. */
    at = class_of(bytes);
    unsigned looks = LOOKS_MAX;
    for (struct heap_block *b = heap->free[at.level][at.class]; b && looks; b = b->next, looks--)
        if (b->bytes >= bytes)
            return b;
    return NULL;
}

/* ---- what is kept ---- */

void heap_region_mark(struct heap_region *region)
{
    kept_table_mark(region->heap->kept_regions, region->row);
}

/* The only block of a region is kept with that. */
static void block_mark(const struct heap_block *block)
{
    if (block->region->slab)
        kept_table_mark(block->region->heap->kept_blocks, block->row);
    else
        heap_region_mark(block->region);
}

static void block_forget(struct heap_block *block)
{
    kept_table_remove(block->region->heap->kept_blocks, &block->row);
}

/* ---- used blocks by address ---- */

static struct heap_block **bucket_of(const struct heap *heap, uint64_t address)
{
    /* 2^64 divided by the golden ratio spreads neighbouring addresses over the table. */
    uint64_t hash = (address / HEAP_ALIGNMENT) * UINT64_C(0x9e3779b97f4a7c15);
    return &heap->buckets[(hash >> 32) & (heap->bucket_count - 1)];
}

/* If memory is short the table stays as it is, which is slower and not wrong. */
static void grow_buckets(struct heap *heap)
{
    struct heap_block **old = heap->buckets;
    uint64_t old_count = heap->bucket_count;
    struct heap_block **grown = calloc(old_count * 2, sizeof *grown);
    if (!grown)
        return;
    heap->buckets = grown;
    heap->bucket_count = old_count * 2;
    for (uint64_t i = 0; i < old_count; i++) {
        for (struct heap_block *b = old[i], *next; b; b = next) {
            next = b->bucket_next;
            struct heap_block **to = bucket_of(heap, b->address);
            b->bucket_next = *to;
            *to = b;
        }
    }
    free(old);
}

static void insert_used(struct heap *heap, struct heap_block *block)
{
    if (heap->used_blocks >= heap->bucket_count * 2)
        grow_buckets(heap);
    struct heap_block **to = bucket_of(heap, block->address);
    block->state = HEAP_BLOCK_USED;
    block->bucket_next = *to;
    *to = block;
    heap->used_blocks++;
    block->region->used++;
    if (block->region->slab)
        kept_table_add(heap->kept_blocks, block, &block->row);
}

void heap_block_reserve(struct heap_block *block)
{
    block->reserved = true;
    block_mark(block);
}

struct heap_block *heap_find(const struct heap *heap, uint64_t address)
{
    struct heap_block *block = *bucket_of(heap, address);
    while (block && block->address != address)
        block = block->bucket_next;
    return block;
}

void heap_block_retire(struct heap_block *block)
{
    struct heap *heap = block->region->heap;
    assert(block->state == HEAP_BLOCK_USED);
    struct heap_block **link = bucket_of(heap, block->address);
    while (*link != block)
        link = &(*link)->bucket_next;
    *link = block->bucket_next;
    block->bucket_next = NULL;
    block->state = HEAP_BLOCK_RETIRED;
    block->reserved = false;
    heap->used_blocks--;
    heap->retired_blocks++;
    block_mark(block);
}

/* ---- blocks ---- */

static struct heap_block *new_block(struct heap_region *region, uint64_t address, uint64_t bytes)
{
    struct heap_block *block = calloc(1, sizeof *block);
    if (block) {
        block->region = region;
        block->address = address;
        block->bytes = bytes;
    }
    return block;
}

int heap_take(struct heap *heap, uint64_t count, struct heap_block **out)
{
    uint64_t bytes = heap_round(count);
    *out = NULL;
    if (!bytes || bytes > heap->bytes)
        return HEAP_FULL;
    struct heap_block *block = find_free(heap, bytes);
    if (!block)
        return HEAP_FULL;
    struct heap_block *rest = NULL;
    if (block->bytes > bytes) {
        rest = new_block(block->region, block->address + bytes, block->bytes - bytes);
        if (!rest)
            return -ENOMEM;
    }
    remove_free(heap, block);
    if (rest) {
        rest->before = block;
        rest->after = block->after;
        if (block->after)
            block->after->before = rest;
        block->after = rest;
        block->bytes = bytes;
        insert_free(heap, rest);
    }
    insert_used(heap, block);
    *out = block;
    return 0;
}

/* Joins the free block that follows into this one. */
static void join_after(struct heap *heap, struct heap_block *block)
{
    struct heap_block *gone = block->after;
    remove_free(heap, gone);
    block->bytes += gone->bytes;
    block->after = gone->after;
    if (gone->after)
        gone->after->before = block;
    free(gone);
}

struct heap_region *heap_block_reclaim(struct heap_block *block)
{
    struct heap_region *region = block->region;
    struct heap *heap = region->heap;
    assert(block->state == HEAP_BLOCK_RETIRED && region->state == HEAP_REGION_LIVE);
    heap->retired_blocks--;
    region->used--;
    block_forget(block);
    if (block->after && block->after->state == HEAP_BLOCK_FREE)
        join_after(heap, block);
    if (block->before && block->before->state == HEAP_BLOCK_FREE) {
        struct heap_block *whole = block->before;
        remove_free(heap, whole);
        /* join_after takes a block out of its class, so this one has to be in one. */
        insert_free(heap, block);
        join_after(heap, whole);
        block = whole;
    }
    insert_free(heap, block);
    return block->bytes == region->bytes ? region : NULL;
}

/* Cuts a free block in two at this address, which lies within it. */
static int split_free(struct heap *heap, struct heap_block *block, uint64_t at)
{
    uint64_t end = block->address + block->bytes;
    struct heap_block *rest = new_block(block->region, at, end - at);
    if (!rest)
        return -ENOMEM;
    remove_free(heap, block);
    rest->before = block;
    rest->after = block->after;
    if (block->after)
        block->after->before = rest;
    block->after = rest;
    block->bytes = at - block->address;
    insert_free(heap, block);
    insert_free(heap, rest);
    return 0;
}

int heap_take_at(struct heap_region *region, struct heap_block *from, uint64_t address,
                 uint64_t bytes, struct heap_block **out)
{
    struct heap *heap = region->heap;
    struct heap_block *block = from ? from : region->first;
    int result = 0;
    while (block && block->address + block->bytes <= address)
        block = block->after;
    if (!block || block->state != HEAP_BLOCK_FREE || address < block->address || !bytes ||
        address % HEAP_ALIGNMENT || bytes % HEAP_ALIGNMENT ||
        bytes > block->address + block->bytes - address)
        return -EINVAL;
    if (address > block->address) {
        result = split_free(heap, block, address);
        block = block->after;
    }
    if (result == 0 && bytes < block->bytes)
        result = split_free(heap, block, address + bytes);
    if (result < 0)
        return result;
    remove_free(heap, block);
    insert_used(heap, block);
    *out = block;
    return 0;
}

/* ---- regions ---- */

static int region_insert(struct heap *heap, struct heap_region *before, struct heap_region *after,
                         uint64_t address, uint64_t bytes, bool slab, struct heap_region **out)
{
    struct heap_region *region = calloc(1, sizeof *region);
    struct heap_block *whole = new_block(region, address, bytes);
    if (!region || !whole) {
        free(region);
        free(whole);
        return -ENOMEM;
    }
    *region = (struct heap_region){.heap = heap,
                                   .address = address,
                                   .bytes = bytes,
                                   .slab = slab,
                                   .state = HEAP_REGION_MAPPING,
                                   .first = whole,
                                   .previous = before,
                                   .next = after,
                                   .charged_fd = CHARGED_FD_NONE};
    if (before)
        before->next = region;
    else
        heap->first = region;
    if (after)
        after->previous = region;
    heap->regions++;
    heap->mapping += slab;
    kept_table_add(heap->kept_regions, region, &region->row);
    *out = region;
    return 0;
}

/* Addresses that no region has, and the regions around them. */
struct gap {
    struct heap_region *before, *after;
    uint64_t address, bytes;
};

/* The first one with room for so many bytes; or the last one, if the heap fills from its end. */
static bool find_gap(const struct heap *heap, uint64_t bytes, struct gap *found)
{
    struct gap gap = {.after = heap->first, .address = heap->base};
    bool any = false;
    for (;;) {
        const uint64_t end = gap.after ? gap.after->address : heap->base + heap->bytes;
        gap.bytes = end - gap.address;
        if (gap.bytes >= bytes) {
            *found = gap;
            any = true;
        }
        if ((any && !heap->from_end) || !gap.after)
            return any;
        gap.before = gap.after;
        gap.address = gap.before->address + gap.before->bytes;
        gap.after = gap.before->next;
    }
}

int heap_region_add(struct heap *heap, uint64_t bytes, bool slab, struct heap_region **out)
{
    struct gap gap = {0};
    *out = NULL;
    if (!bytes || bytes % heap->granularity || bytes > heap->bytes || !find_gap(heap, bytes, &gap))
        return HEAP_FULL;
    const uint64_t address = heap->from_end ? gap.address + gap.bytes - bytes : gap.address;
    return region_insert(heap, gap.before, gap.after, address, bytes, slab, out);
}

int heap_region_put(struct heap *heap, uint64_t address, uint64_t bytes, bool slab,
                    struct heap_region **out)
{
    struct heap_region *before = NULL, *after = heap->first;
    *out = NULL;
    if (!bytes || bytes % heap->granularity || bytes > heap->bytes || address < heap->base ||
        address % heap->granularity || address - heap->base > heap->bytes - bytes)
        return -EINVAL;
    for (; after && after->address < address; before = after, after = after->next)
        ;
    if ((before && before->address + before->bytes > address) ||
        (after && after->address < address + bytes))
        return -EINVAL;
    return region_insert(heap, before, after, address, bytes, slab, out);
}

struct heap_block *heap_region_ready(struct heap_region *region)
{
    struct heap *heap = region->heap;
    struct heap_block *whole = region->first;
    assert(region->state == HEAP_REGION_MAPPING);
    region->state = HEAP_REGION_LIVE;
    heap_region_mark(region);
    heap->mapping -= region->slab;
    if (!region->slab) {
        insert_used(heap, whole);
        return whole;
    }
    insert_free(heap, whole);
    if (region->bytes >= heap->next_slab && heap->next_slab < HEAP_SLAB_MAX)
        heap->next_slab *= 2;
    return NULL;
}

void heap_region_clear(struct heap_region *region)
{
    struct heap_block *whole = region->first;
    assert(region->state == HEAP_REGION_LIVE && whole);
    for (struct heap_block *block = whole, *next; block; block = next) {
        next = block->after;
        if (block->state == HEAP_BLOCK_FREE)
            remove_free(region->heap, block);
        else if (block->state == HEAP_BLOCK_USED)
            heap_block_retire(block);
        region->heap->retired_blocks -= block->state == HEAP_BLOCK_RETIRED;
        block_forget(block);
        if (block != whole)
            free(block);
    }
    whole->bytes = region->bytes;
    whole->before = whole->after = whole->next = NULL;
    whole->state = HEAP_BLOCK_RETIRED;
    region->heap->retired_blocks++;
    region->used = 1;
}

void heap_region_withdraw(struct heap_region *region)
{
    struct heap_block *whole = region->first;
    assert(region->state == HEAP_REGION_LIVE && whole->bytes == region->bytes);
    assert(whole->state != HEAP_BLOCK_USED);
    if (whole->state == HEAP_BLOCK_FREE)
        remove_free(region->heap, whole);
    else
        region->heap->retired_blocks--;
    block_forget(whole);
    free(whole);
    region->first = NULL;
    region->used = 0;
    region->state = HEAP_REGION_UNMAPPING;
    heap_region_mark(region);
}

int heap_region_again(struct heap_region *region)
{
    assert(region->state == HEAP_REGION_UNMAPPING && !region->slab);
    region->first = new_block(region, region->address, region->bytes);
    if (!region->first)
        return -ENOMEM;
    region->state = HEAP_REGION_MAPPING;
    heap_region_mark(region);
    return 0;
}

void heap_move(struct heap *from, struct heap *to)
{
    *to = *from;
    to->kept_regions = to->kept_blocks = NULL;
    for (struct heap_region *region = to->first; region; region = region->next) {
        for (struct heap_block *block = region->first; block; block = block->after)
            block_forget(block);
        kept_table_remove(from->kept_regions, &region->row);
        region->heap = to;
    }
    memset(from, 0, sizeof *from);
}

void heap_region_remove(struct heap_region *region)
{
    struct heap *heap = region->heap;
    assert(region->state != HEAP_REGION_LIVE);
    assert(region->charged_fd.fd < 0 && !region->charge.quota && !region->charged_fd.charge.quota);
    if (region->state == HEAP_REGION_MAPPING) {
        heap->mapping -= region->slab;
        free(region->first);
    }
    if (region->previous)
        region->previous->next = region->next;
    else
        heap->first = region->next;
    if (region->next)
        region->next->previous = region->previous;
    heap->regions--;
    kept_table_remove(heap->kept_regions, &region->row);
    free(region);
}
