/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory_table: the calls by which memory_map.c, memory_alloc.c and memory_heap.c make ranges live,
 * in the table of memory.c. No other file includes it.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_TABLE_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_heap;

/* Whether any byte of [start, end) is in a live range. */
bool memory_table_overlaps(uint64_t start, uint64_t end);
/* Adds a range that overlaps no other. Returns 0 or -ENOMEM. */
int memory_table_add(uint64_t start, uint64_t end, uint32_t access, bool host, unsigned device);
/* The same for the memory of a heap, which stays the caller's and lives until the pages do. */
int memory_table_add_heap(uint64_t start, uint64_t end, const struct kernel_heap *heap,
                          unsigned device);
/* Marks a range as memory of both sides. start: the start of a range that was added. */
void memory_table_manage(uint64_t start);
/* Change the access of a range, and remove a range. start: the start of a range that was added. */
void memory_table_access(uint64_t start, uint32_t access);
void memory_table_remove(uint64_t start);

/*
 * Returns a stamp, after a removal. The stamp has passed when every thread that was inside at that
 * time has left. memory_quiesce() waits until a new stamp has passed, which takes at most one turn
 * of a block. Not to be called between memory_enter() and memory_leave().
 */
uint64_t memory_stamp(void);
bool memory_passed(uint64_t stamp);
void memory_quiesce(void);

#endif
