/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * charges: which process holds how much of each device's memory, recorded across all processes that
 * name one file in SOFTGPU_STATE. Without the variable it covers this process alone.
 *
 * An allocation that can be shared is known by the inode of its memfd, and counted once, however
 * many processes hold it. A process is known by its pid and start time, and the entries of a dead
 * process are removed. Memory that it had exported stays charged as long as a process that we may
 * look at has the memfd open. Hardware keeps memory for an open file descriptor in the same way.
 *
 * Any thread; each call locks the file.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_CHARGES_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_CHARGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct charges;

/*
 * Opens the record. path: a file that is created or joined, or "" for a record of this process.
 * Returns 0, or an error number that *why explains.
 */
uint32_t charges_open(struct charges **charges, const char *path, struct error *why);
void charges_close(struct charges *charges); /* removes those of this process; NULL is allowed */

/*
 * Charges bytes of a device against its total. inode: the memfd's; 0 for memory that is never
 * shared. Returns 0; -ENOMEM if the total would be exceeded; or -ENOSPC if the record has no free
 * line.
 */
int charges_add(struct charges *charges, unsigned device, uint64_t total, uint64_t inode,
                uint64_t bytes);

/* Undoes one charge of the same inode and size. */
void charges_remove(struct charges *charges, unsigned device, uint64_t inode, uint64_t bytes);

/* Says that a descriptor of the memory was exported, so the memory may outlive every process
 * that charged it. */
void charges_exported(struct charges *charges, unsigned device, uint64_t inode);

/*
 * The process has a context on the device from now on, which takes bytes of its memory; it has none
 * yet. exclusive: only if no other process has one. Returns 0; -EBUSY: another one has; or as
 * charges_add. charges_context_end undoes it.
 */
int charges_context_begin(struct charges *charges, unsigned device, uint64_t total, uint64_t bytes,
                          bool exclusive);
void charges_context_end(struct charges *charges, unsigned device);

/* Returns the bytes that are charged on the device now, after it has removed the entries of dead
 * processes. */
uint64_t charges_used(struct charges *charges, unsigned device);

#endif
