/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/ring_memory.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "common/ipc/ring.h"
#include "common/ipc/shm.h"

static int map_part(const struct ring_memory *memory, size_t at, size_t bytes, int fd)
{
    int result = shm_check(fd, bytes);
    if (result < 0)
        return result;
    return shm_map_at(fd, (uint64_t)(uintptr_t)memory->base + at, bytes, true);
}

int ring_memory_open(struct ring_memory *memory, uint32_t streams, int fd)
{
    assert(streams <= PROTO_STREAMS_MAX);
    *memory = (struct ring_memory){.bytes = ring_memory_bytes(streams), .streams = streams};
    /* Readable, because the other side may ring for a ring that has no memory. */
    void *base = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return -errno;
    memory->base = base;
    int result = map_part(memory, 0, PROTO_RING_FIRST, fd);
    if (result < 0)
        ring_memory_close(memory);
    return result;
}

int ring_memory_add(struct ring_memory *memory, uint32_t first, uint32_t count, int fd)
{
    if (!count || first >= memory->streams || count > memory->streams - first)
        return -EINVAL;
    bool whole = true;
    for (uint32_t i = first; i < first + count; i++)
        whole &= ring_memory_has(memory, i);
    if (whole)
        return 0;
    int result = map_part(memory, PROTO_RING_FIRST + (size_t)first * PROTO_RING_STRIDE,
                          (size_t)count * PROTO_RING_STRIDE, fd);
    for (uint32_t i = first; result == 0 && i < first + count; i++)
        memory->present[i / 64] |= UINT64_C(1) << i % 64;
    return result;
}

bool ring_memory_has(const struct ring_memory *memory, uint32_t stream)
{
    return memory->present[stream / 64] >> stream % 64 & 1;
}

void ring_memory_close(struct ring_memory *memory)
{
    if (memory->base)
        munmap(memory->base, memory->bytes);
    *memory = (struct ring_memory){.base = NULL};
}
