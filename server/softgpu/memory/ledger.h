/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ledger: who holds how much of each device's memory, across the processes that
 * name one file in SOFTGPU_STATE (without it, within this process).
 *
 * An allocation that can be shared is known by the inode of its memfd and
 * counted once, however many processes hold it. A process that died is struck
 * out by pid and start time. Memory that it had exported stays charged while any
 * process that we may look at still has the memfd open, as hardware keeps
 * memory for an open file descriptor.
 *
 * Any thread; calls lock the file.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_LEDGER_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct ledger;

/*
 * path: a file to be created or joined, or "" for a ledger of this process.
 * Returns 0, or an error number that *why explains.
 */
uint32_t ledger_open(struct ledger **ledger, const char *path, struct error *why);
void ledger_close(struct ledger *ledger); /* this process's charges go; NULL allowed */

/*
 * Charges bytes of a device against its total. inode: of the memfd, 0 for
 * memory that is never shared. 0, -ENOMEM when the total would be passed, or
 * -ENOSPC when the ledger has no line left.
 */
int ledger_charge(struct ledger *ledger, unsigned device, uint64_t total, uint64_t inode,
                  uint64_t bytes);

/* Undoes one charge of the same inode and size. */
void ledger_release(struct ledger *ledger, unsigned device, uint64_t inode, uint64_t bytes);

/* A descriptor of the memory was given out: it may outlive every process that charged it. */
void ledger_exported(struct ledger *ledger, unsigned device, uint64_t inode);

/* Bytes charged on the device now, after striking out the dead. */
uint64_t ledger_used(struct ledger *ledger, unsigned device);

#endif
