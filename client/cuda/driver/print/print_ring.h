/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * print_ring: the memory into which kernels print (print_code.c), and which the program's process
 * reads. It is a buffer of the program's own that the device reaches too.
 *
 * Kernels add records behind one another, without waiting for the reader: what was not read in time
 * is written over, as in CUDA. A record begins with a tag, which its place and the ring alone give.
 * It is written last. So the reader tells a whole record from one that is being written or is
 * written over, and never takes one that another process left in the same memory.
 *
 * Kernels can write anywhere in the ring, so nothing in it is believed. One thread at a time.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_PRINT_PRINT_RING_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_PRINT_PRINT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* At the beginning of the memory; records follow. The function in print_code.c knows the places. */
struct print_ring_head {
    uint64_t written; /* bytes of all records so far */
    uint64_t mask;    /* bytes of the ring, a power of two, less one */
    uint64_t nonce;   /* a tag is the number of bytes written before its record, plus this */
    uint64_t unused[5];
};
_Static_assert(sizeof(struct print_ring_head) == 64, "");

/* Beginning of a record; the parts of print_format.h follow, then zero bytes up to a multiple of
 * 8. */
struct print_ring_record {
    uint64_t tag;
    uint32_t bytes, argument_bytes; /* of the record; of its arguments, a multiple of 8 */
};

struct print_ring {
    struct print_ring_head *head;
    uint64_t bytes, nonce, read; /* our own copies, and how far the reader came */
    uint8_t *copy;               /* room for a record */
};

/* Bytes of memory that a ring of `bytes` bytes of records takes. */
static inline size_t print_ring_memory(uint64_t bytes)
{
    return sizeof(struct print_ring_head) + bytes;
}

/* Begins an empty ring of `bytes` bytes of records, a power of two from 64 on, in memory that is
 * zero. Returns 0, or a negative errno without memory or random numbers. */
int print_ring_open(struct print_ring *ring, void *memory, uint64_t bytes);
void print_ring_close(struct print_ring *ring);

/*
 * Writes the records that were added before the call, each once. all: no kernel adds any now, so
 * that a record which is not whole never will be; otherwise it and those behind it stay for the
 * next call.
 */
void print_ring_show(struct print_ring *ring, bool all, FILE *to);

#endif
