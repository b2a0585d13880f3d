/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory_table: what memory.c (live ranges, windows) offers to memory_map.c (the
 * objects that make ranges live). Nobody else includes this.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_TABLE_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Is any byte of [start, end) in a live range? */
bool memory_table_overlaps(uint64_t start, uint64_t end);
/* Adds a range that overlaps no other. 0 or -ENOMEM. */
int memory_table_add(uint64_t start, uint64_t end, uint32_t access, bool host, unsigned device);
/* start: of a range that was added. */
void memory_table_access(uint64_t start, uint32_t access);
void memory_table_remove(uint64_t start);

/*
 * After a removal: a stamp, which has passed once no thread is inside since
 * before it. memory_quiesce() waits for a new one; that takes at most one turn
 * of a block. Not inside memory_enter().
 */
uint64_t memory_stamp(void);
bool memory_passed(uint64_t stamp);
void memory_quiesce(void);

#endif
