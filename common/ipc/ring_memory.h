/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ring_memory: one side's mapping of a client's rings. Addresses for all rings that the client may
 * have are reserved at the start, so a ring's place never changes (ring_at). The memory comes
 * later, in segments of neighbouring rings, each a sealed memfd of the server's.
 *
 * A ring without memory reads as zeros, which is an empty ring. Words written to it are lost when
 * its memory comes.
 *
 * Any thread. One thread at a time adds; others may use rings meanwhile, the ones that come too.
 */
#ifndef GPUSHARE_COMMON_IPC_RING_MEMORY_H
#define GPUSHARE_COMMON_IPC_RING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

struct ring_memory {
    void *base; /* NULL: not open */
    size_t bytes;
    uint32_t streams;
    uint64_t present[PROTO_STREAMS_MAX / 64]; /* bitmap of the rings that have memory */
};

/* Reserves addresses for the rings of so many streams, at most PROTO_STREAMS_MAX, and maps the
 * first page from fd, which stays the caller's. Returns 0; -EBADF if the descriptor is no memfd
 * with the seals of shm.h, or too small; or another -errno. ring_memory_close ends it. */
int ring_memory_open(struct ring_memory *memory, uint32_t streams, int fd);

/* Maps `count` rings from `first` on, which the descriptor holds one after the other; fd stays the
 * caller's. Where all of them have memory already, nothing happens. Returns 0; -EINVAL if the
 * client can't have such rings; or as ring_memory_open. */
int ring_memory_add(struct ring_memory *memory, uint32_t first, uint32_t count, int fd);

/* Whether a ring has memory. stream: below the number of streams. Only the thread that adds. */
bool ring_memory_has(const struct ring_memory *memory, uint32_t stream);

/* Unmaps everything. Idempotent; zeroes are allowed. */
void ring_memory_close(struct ring_memory *memory);

#endif
