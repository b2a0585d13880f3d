/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * usage_counts: what clients have used, at the head of the ledger's memory, where the supervisor
 * reads what its workers write. So a bill needs no answer of a worker, which may be lost.
 *
 * A client's row is found by its number. It stays when the client has left, until a client whose
 * number is USAGE_COUNTS_ROWS higher, or a multiple of that, comes. A row has two copies that are
 * written in turn: a worker may die at any instruction. One thread at a time writes, in one
 * process; any reads.
 */
#ifndef GPUSHARE_COMMON_IPC_USAGE_COUNTS_H
#define GPUSHARE_COMMON_IPC_USAGE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* Memory that is not written is not taken. Two clients with one row are there at a time only where
 * one stays while so many others come: then a line of its use may come late. */
enum { USAGE_COUNTS_ROWS = 32768 };

struct usage_counts {
    uint64_t client; /* its number; 0: none */
    uint64_t launches, copies, copied_bytes, gpu_ns;
};

/* turn: how often it was written; its parity says which copy is whole. 0: neither. */
struct usage_counts_slot {
    uint64_t turn;
    struct usage_counts copy[2];
};

/* Raised when the meaning or the place of anything above changes. */
#define USAGE_COUNTS_FORM UINT64_C(0x75736167650001)

struct usage_counts_table {
    uint64_t form; /* USAGE_COUNTS_FORM, or nothing here can be read */
    struct usage_counts_slot slots[USAGE_COUNTS_ROWS];
};

/* Begins a table whose memory is zeros. */
void usage_counts_begin(struct usage_counts_table *table);

/* Writes what a client has used in all. */
void usage_counts_write(struct usage_counts_table *table, const struct usage_counts *counts);

/* Reads it. Returns false if the table does not have the client. A row that is written meanwhile is
 * read again. */
bool usage_counts_read(struct usage_counts_table *table, uint64_t client,
                       struct usage_counts *counts);

#endif
