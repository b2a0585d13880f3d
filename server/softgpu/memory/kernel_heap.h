/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * kernel_heap: the blocks of one range of memory that kernels allocate and free themselves.
 *
 * The records lie apart from the blocks, so whatever a kernel writes harms no record. Between two
 * blocks lie 16 bytes at least that belong to neither, and a freed block is not used again before a
 * quarter of the heap was freed after it, or nothing else is left. So an access behind a block's
 * end, or to a freed one, finds no block in most cases.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_KERNEL_HEAP_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_KERNEL_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_heap;

/*
 * A heap of so many bytes needs memory for its blocks, and for its records. kernel_heap_make()
 * begins a heap in both, whose first block may have all of its bytes. blocks: an address that is a
 * multiple of 4096. records: zeroed, aligned to 4096; the heap lies there, and ends with it.
 * remains: a new block has words at both ends that are not zero, as if another had left them.
 */
uint64_t kernel_heap_block_bytes(uint64_t bytes);
uint64_t kernel_heap_record_bytes(uint64_t bytes);
struct kernel_heap *kernel_heap_make(void *records, uint64_t blocks, uint64_t bytes, bool remains);

/* Any thread. kernel_heap_alloc() and kernel_heap_free() are called between these two. */
void kernel_heap_lock(struct kernel_heap *heap);
void kernel_heap_unlock(struct kernel_heap *heap);

/*
 * Returns the address of a block of so many bytes, a multiple of 16 and of alignment, or 0 if there
 * is no room for one. alignment: a power of two. size 0: a block of its own, of which no byte may
 * be used.
 */
uint64_t kernel_heap_alloc(struct kernel_heap *heap, uint64_t size, uint64_t alignment);

/* Why an address can't be freed. */
enum kernel_heap_freed {
    KERNEL_HEAP_FREED,
    KERNEL_HEAP_FREED_BEFORE, /* a block began there, and was freed */
    KERNEL_HEAP_INSIDE,       /* it is inside of a block */
    KERNEL_HEAP_NO_BLOCK,     /* no block was ever there, or it is no address of the heap */
};
enum kernel_heap_freed kernel_heap_free(struct kernel_heap *heap, uint64_t address);

/* Whether [address, address + bytes), within the heap, belongs to blocks that are not freed: bytes
 * of a block count up to the next multiple of 16. Without the lock. */
bool kernel_heap_allows(const struct kernel_heap *heap, uint64_t address, uint32_t bytes);

#endif
