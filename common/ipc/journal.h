/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * journal: the commands that a worker was about to hand to the driver, in private memory that
 * outlives it. It lies behind the tables of a client's shadow memory (ring.h), and no client can
 * see it. The ring itself is no witness: its client may write over what was read.
 *
 * The worker writes an entry before ring_shadow_begun names it. The latest JOURNAL_ENTRIES of a
 * client's commands stay. One thread of one process at a time writes. Anybody reads when that
 * process is gone, and with journal_read before that too.
 */
#ifndef GPUSHARE_COMMON_IPC_JOURNAL_H
#define GPUSHARE_COMMON_IPC_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ipc/ring.h"

/* 16 KiB, which stay in a processor's cache while they are written in turn. */
enum { JOURNAL_ENTRIES = 256, JOURNAL_COMMAND_WORDS = 6 };

struct journal_entry {
    uint64_t value; /* of the stream's timeline; 0: none, or it was being written */
    uint64_t stream;
    uint64_t command[JOURNAL_COMMAND_WORDS]; /* a descriptor's beginning, without what it holds of
                                                a kernel's parameters */
};

/* Bytes of the shadow memory of a client with this many streams, its journal included. */
size_t journal_shadow_bytes(uint32_t streams);

/* The first of the JOURNAL_ENTRIES entries in that memory. */
struct journal_entry *journal_at(void *shadow_memory, uint32_t streams);

/* Writes a command of a stream as the next entry. *next: the caller's, 0 at first. */
void journal_note(struct journal_entry *journal, uint32_t *next, uint32_t stream, uint64_t value,
                  const struct ring_descriptor *descriptor);

/* Copies an entry that may be written meanwhile. Returns false if it has no command, or is being
 * written. */
bool journal_read(const struct journal_entry *entry, struct journal_entry *copy);

#endif
