/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Why our own: the allocators of the C library and others keep records beside the blocks, where
 * kernels write, and none says of an address whether it is in a block.
 *
 * The heap is a row of granules of 16 bytes, which spans divide: a span is free, or it is a block
 * with the gap behind it. Each granule has a record, of which only those at the two ends of a span
 * are used, so the others have no page. Free spans are in lists by their length; a mask has the
 * lists that are not empty.
 */
#include "server/softgpu/memory/kernel_heap.h"

#include <pthread.h>
#include <string.h>

#include "common/ipc/shared_word.h"
#include "common/util.h"

enum {
    PAGE = 4096,
    SHIFT = 4,    /* of a granule, unless there were too many for 32 bits */
    SPAN_MIN = 2, /* a block's granule, or none of a block of size 0, and the gap; two ends */
    /* Lists: one for each length below EXACT, then STEPS for each power of two. */
    EXACT = 64,
    EXACT_LOG = 6,
    STEPS_LOG = 5,
    STEPS = 1 << STEPS_LOG,
    LISTS = EXACT + (32 - EXACT_LOG) * STEPS,
};

/* Of the first granule of a span; the last one says FREE_END or USED_END. */
enum state { INNER, FREE, HELD, USED, FREE_END, USED_END };

struct record {
    uint32_t length; /* both ends: granules of the span */
    uint32_t next, previous;
    uint8_t state;
    bool freed; /* a block that began here was freed, and none has begun here since */
};

#define NONE UINT32_MAX

struct list_of_spans {
    uint32_t first, last;
};

struct kernel_heap {
    pthread_mutex_t lock;
    uint64_t base;
    uint32_t granules, shift;
    bool remains;
    uint64_t mask[(LISTS + 63) / 64];
    struct list_of_spans lists[LISTS];
    /* Freed blocks in the order of their freeing, which are not free spans yet. */
    struct list_of_spans held;
    uint64_t held_granules;
    struct record *records;
    uint64_t *bits; /* one for each granule: it is part of a block */
};

/* ---- geometry -------------------------------------------------------------------------- */

static uint32_t shift_of(uint64_t bytes)
{
    uint32_t shift = SHIFT;

    while (bytes >> shift >= UINT32_MAX - SPAN_MIN)
        shift++;
    return shift;
}

/* With the gap behind the last block. */
static uint32_t granules_of(uint64_t bytes)
{
    const uint32_t shift = shift_of(bytes);
    const uint64_t whole = (bytes >> shift) + ((bytes & ((UINT64_C(1) << shift) - 1)) != 0);

    return (uint32_t)max(whole + 1, (uint64_t)SPAN_MIN);
}

static uint64_t pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static uint64_t bit_bytes(uint32_t granules)
{
    return ((uint64_t)granules + 63) / 64 * sizeof(uint64_t);
}

uint64_t kernel_heap_block_bytes(uint64_t bytes)
{
    return pages((uint64_t)granules_of(bytes) << shift_of(bytes));
}

uint64_t kernel_heap_record_bytes(uint64_t bytes)
{
    const uint32_t granules = granules_of(bytes);

    return pages(sizeof(struct kernel_heap)) + pages(granules * sizeof(struct record)) +
           pages(bit_bytes(granules));
}

/* ---- lists ------------------------------------------------------------------------------ */

static uint32_t list_of(uint32_t length)
{
    if (length < EXACT)
        return length;
    const uint32_t log = 31 - (uint32_t)__builtin_clz(length);
    return EXACT + (log - EXACT_LOG) * STEPS + (length >> (log - STEPS_LOG) & (STEPS - 1));
}

/* At the end, so that what was free for the longest time is used first. */
static void append(struct kernel_heap *heap, struct list_of_spans *list, uint32_t at)
{
    struct record *record = &heap->records[at];

    record->next = NONE;
    record->previous = list->last;
    if (list->last == NONE)
        list->first = at;
    else
        heap->records[list->last].next = at;
    list->last = at;
}

static void unlink_span(struct kernel_heap *heap, struct list_of_spans *list, uint32_t at)
{
    const struct record *record = &heap->records[at];

    if (record->previous == NONE)
        list->first = record->next;
    else
        heap->records[record->previous].next = record->next;
    if (record->next == NONE)
        list->last = record->previous;
    else
        heap->records[record->next].previous = record->previous;
}

static void set_span(struct kernel_heap *heap, uint32_t at, uint32_t length, enum state state)
{
    struct record *first = &heap->records[at], *last = &heap->records[at + length - 1];

    first->length = last->length = length;
    first->state = (uint8_t)state;
    last->state = state == FREE ? FREE_END : USED_END;
}

static void add_free(struct kernel_heap *heap, uint32_t at, uint32_t length)
{
    const uint32_t list = list_of(length);

    set_span(heap, at, length, FREE);
    append(heap, &heap->lists[list], at);
    heap->mask[list / 64] |= UINT64_C(1) << (list % 64);
}

/* Returns its length. */
static uint32_t remove_free(struct kernel_heap *heap, uint32_t at)
{
    const uint32_t length = heap->records[at].length, list = list_of(length);

    unlink_span(heap, &heap->lists[list], at);
    if (heap->lists[list].first == NONE)
        heap->mask[list / 64] &= ~(UINT64_C(1) << (list % 64));
    return length;
}

/* The first list from this one on that is not empty; LISTS: there is none. */
static uint32_t next_list(const struct kernel_heap *heap, uint32_t list)
{
    while (list < LISTS) {
        const uint64_t left = heap->mask[list / 64] >> (list % 64);

        if (left)
            return list + (uint32_t)__builtin_ctzll(left);
        list = (list / 64 + 1) * 64;
    }
    return LISTS;
}

/* ---- beginning ---------------------------------------------------------------------------- */

struct kernel_heap *kernel_heap_make(void *records, uint64_t blocks, uint64_t bytes, bool remains)
{
    struct kernel_heap *heap = records;
    uint8_t *behind = (uint8_t *)records + pages(sizeof(*heap));

    pthread_mutex_init(&heap->lock, NULL);
    heap->base = blocks;
    heap->granules = granules_of(bytes);
    heap->shift = shift_of(bytes);
    heap->remains = remains;
    heap->held = (struct list_of_spans){NONE, NONE};
    for (uint32_t i = 0; i < LISTS; i++)
        heap->lists[i] = (struct list_of_spans){NONE, NONE};
    heap->records = (void *)behind;
    heap->bits = (void *)(behind + pages(heap->granules * sizeof(struct record)));
    add_free(heap, 0, heap->granules);
    return heap;
}

void kernel_heap_lock(struct kernel_heap *heap)
{
    pthread_mutex_lock(&heap->lock);
}

void kernel_heap_unlock(struct kernel_heap *heap)
{
    pthread_mutex_unlock(&heap->lock);
}

/* ---- the bits ----------------------------------------------------------------------------- */

static uint64_t bits_between(uint32_t from, uint32_t to)
{
    return ~UINT64_C(0) << from & ~UINT64_C(0) >> (64 - to);
}

/* Threads look at them without the lock. */
static void mark(struct kernel_heap *heap, uint32_t at, uint32_t count, bool set)
{
    for (uint32_t done = 0; done < count;) {
        const uint32_t from = (at + done) % 64, here = min(count - done, 64 - from);
        uint64_t *word = &heap->bits[(at + done) / 64];
        const uint64_t bits = bits_between(from, from + here);

        shared_word_write(word, set ? *word | bits : *word & ~bits);
        done += here;
    }
}

static bool is_marked(const struct kernel_heap *heap, uint64_t granule)
{
    return shared_word_hint(&heap->bits[granule / 64]) >> (granule % 64) & 1;
}

bool kernel_heap_allows(const struct kernel_heap *heap, uint64_t address, uint32_t bytes)
{
    const uint64_t last = (address - heap->base + bytes - 1) >> heap->shift;

    for (uint64_t at = (address - heap->base) >> heap->shift; at <= last; at++)
        if (at >= heap->granules || !is_marked(heap, at))
            return false;
    return true;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* A freed block becomes a free span, together with its free neighbours. */
static void release_first(struct kernel_heap *heap)
{
    uint32_t at = heap->held.first, length = heap->records[at].length;

    unlink_span(heap, &heap->held, at);
    heap->held_granules -= length;
    if (at + length < heap->granules && heap->records[at + length].state == FREE)
        length += remove_free(heap, at + length);
    if (at > 0 && heap->records[at - 1].state == FREE_END) {
        at -= heap->records[at - 1].length;
        length += remove_free(heap, at);
    }
    add_free(heap, at, length);
}

/* Where a span of `length` may begin in the free one at `at`, if what lies behind its beginning is
 * to be a multiple of `step`; NONE: nowhere. */
static uint32_t place_in(const struct kernel_heap *heap, uint32_t at, uint32_t length,
                         uint32_t step)
{
    const uint64_t origin = heap->base >> heap->shift;
    uint64_t begin = (origin + at + step - 1) / step * step - origin;

    if (begin - at == 1) /* no span is as short as what would be left before it */
        begin += step;
    return begin + length <= (uint64_t)at + heap->records[at].length ? (uint32_t)begin : NONE;
}

/* A free span that has room; NONE: there is none. In the first list some may be too short, and in
 * each only some have an end that is aligned. */
static uint32_t find_free(const struct kernel_heap *heap, uint32_t length, uint32_t step)
{
    for (uint32_t list = next_list(heap, list_of(length)); list < LISTS;
         list = next_list(heap, list + 1))
        for (uint32_t at = heap->lists[list].first; at != NONE; at = heap->records[at].next)
            if (place_in(heap, at, length, step) != NONE)
                return at;
    return NONE;
}

/* Takes a span out of the free one at `at`. Returns its first granule. */
static uint32_t cut(struct kernel_heap *heap, uint32_t at, uint32_t length, uint32_t step)
{
    const uint32_t begin = place_in(heap, at, length, step);
    const uint32_t end = at + remove_free(heap, at);

    if (begin > at)
        add_free(heap, at, begin - at);
    if (end - begin - length >= SPAN_MIN)
        add_free(heap, begin + length, end - begin - length);
    else
        length = end - begin;
    set_span(heap, begin, length, USED);
    return begin;
}

/* A program that reads before it writes must not find zeros by luck. */
static void leave_remains(uint64_t address, uint64_t bytes)
{
    const uint64_t words[2] = {UINT64_C(0x5ec2e75a5ec2e75a), UINT64_C(0x5ec2e75a5ec2e75a)};

    memcpy((void *)(uintptr_t)address, words, sizeof(words));
    memcpy((void *)(uintptr_t)(address + bytes - sizeof(words)), words, sizeof(words));
}

uint64_t kernel_heap_alloc(struct kernel_heap *heap, uint64_t size, uint64_t alignment)
{
    const uint64_t whole = UINT64_C(1) << heap->shift;
    const uint64_t used = (size >> heap->shift) + ((size & (whole - 1)) != 0);

    if (used >= heap->granules || alignment >> heap->shift >= heap->granules)
        return 0;
    const uint32_t length = max((uint32_t)used + 1, (uint32_t)SPAN_MIN);
    const uint32_t step = max((uint32_t)(alignment >> heap->shift), 1u);
    uint32_t at = find_free(heap, length, step);
    if (at == NONE && heap->held.first != NONE) {
        while (heap->held.first != NONE)
            release_first(heap);
        at = find_free(heap, length, step);
    }
    if (at == NONE)
        return 0;
    at = cut(heap, at, length, step);
    heap->records[at].freed = false;
    const uint64_t address = heap->base + ((uint64_t)at << heap->shift);
    if (used > 0 && heap->remains)
        leave_remains(address, used << heap->shift);
    /* The length of a block is not kept: a freed one's bits are cleared up to its gap. */
    mark(heap, at, (uint32_t)used, true);
    return address;
}

enum kernel_heap_freed kernel_heap_free(struct kernel_heap *heap, uint64_t address)
{
    const uint64_t at = (address - heap->base) >> heap->shift;

    if (at >= heap->granules)
        return KERNEL_HEAP_NO_BLOCK;
    struct record *record = &heap->records[at];
    if (record->state != USED || heap->base + (at << heap->shift) != address) {
        if (is_marked(heap, at))
            return KERNEL_HEAP_INSIDE;
        return record->freed && heap->base + (at << heap->shift) == address
                   ? KERNEL_HEAP_FREED_BEFORE
                   : KERNEL_HEAP_NO_BLOCK;
    }
    mark(heap, (uint32_t)at, record->length, false);
    record->state = HELD;
    record->freed = true;
    append(heap, &heap->held, (uint32_t)at);
    heap->held_granules += record->length;
    while (heap->held_granules > heap->granules / 4)
        release_first(heap);
    return KERNEL_HEAP_FREED;
}
