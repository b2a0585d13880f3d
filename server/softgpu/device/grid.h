/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * grid: a launch or a fill in progress, and the choice of multiprocessors and times for its
 * blocks.
 *
 * A block goes to the least loaded multiprocessor of its stream's set that has room for it: blocks,
 * threads and shared memory. It stays there until its modelled end. Then the next block of the most
 * urgent waiting grid follows, at that time. All calls are made with the engine's lock held, unless
 * they say otherwise.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_GRID_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_GRID_H

#include <stdint.h>

#include "server/softgpu/exec/block.h"
#include "server/softgpu/device/stream.h"

struct launch {
    const struct function *function;
    uint32_t grid[3], threads[3];
    uint32_t dynamic_shared_bytes;
    uint32_t static_shared_bytes;
    const void *params; /* copied */
    uint32_t param_bytes;
    uint64_t workspace;           /* of a cooperative grid; 0 for others */
    unsigned device;              /* its number in the machine */
    void (*release)(void *owner); /* called when no block needs the function any more */
    void *owner;
};

/* Makes a grid for an operation, which frees it. Returns NULL without memory. Called without the
 * lock. */
struct grid *grid_create(const struct launch *launch);
/* The same, whose blocks fill memory instead of running a function; count is not 0. */
struct grid *grid_create_fill(const struct fill *fill);
void grid_destroy(struct grid *grid);

/* Called when the last block of an operation's grid has ended, with the modelled time. The grid
 * may be gone when the function returns. */
typedef void grid_complete(struct operation *op, uint64_t time);

/* Starts a grid at this modelled time, on the multiprocessors of the operation's stream. */
void grid_start(struct grid *grid, struct operation *op, grid_complete *complete, uint64_t time);

/* Returns how many such blocks fit on one multiprocessor at the same time. */
unsigned grid_blocks_per_sm(uint32_t threads, uint32_t shared_bytes);

#endif
