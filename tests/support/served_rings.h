/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * served_rings: ring memory as a server makes it, for tests that stand in for one. All rings are in
 * one segment.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_SERVED_RINGS_H
#define GPUSHARE_TESTS_SUPPORT_SERVED_RINGS_H

#include <unistd.h>

#include "common/ipc/ring.h"
#include "common/ipc/ring_memory.h"
#include "common/ipc/shm.h"

struct served_rings {
    void *base; /* as ring_at takes it */
    struct ring_memory memory;
    struct shm header, segment;
    int fd, segment_fd; /* of the first page; of the rings */
};

#define SERVED_RINGS_NONE ((struct served_rings){.header = SHM_NONE, .segment = SHM_NONE})

/* Returns 0 or -errno. served_rings_release ends it. */
static inline int served_rings_make(struct served_rings *rings, uint32_t streams)
{
    *rings = SERVED_RINGS_NONE;
    int result = shm_create(&rings->header, "rings", PROTO_RING_FIRST);
    if (result == 0)
        result = shm_create(&rings->segment, "rings", (size_t)streams * PROTO_RING_STRIDE);
    rings->fd = rings->header.fd;
    rings->segment_fd = rings->segment.fd;
    if (result == 0)
        result = ring_memory_open(&rings->memory, streams, rings->fd);
    rings->base = rings->memory.base;
    return result ? result : ring_memory_add(&rings->memory, 0, streams, rings->segment_fd);
}

static inline void served_rings_release(struct served_rings *rings)
{
    ring_memory_close(&rings->memory);
    shm_release(&rings->header);
    shm_release(&rings->segment);
}

#endif
