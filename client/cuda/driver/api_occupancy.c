/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* How many blocks of a kernel a multiprocessor holds, and what follows from that for the client's
 * share. The server answers; nothing here knows a device's rules. */
#include <stdint.h>

#include "client/cuda/driver/base/driver_context.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/engine/connection.h"
#include "client/engine/module.h"
#include "common/util.h"

static cuda_result check(cuda_function handle, struct gpushare_function **function)
{
    *function = (struct gpushare_function *)handle;
    return handle ? driver_connection_check((*function)->connection) : CUDA_ERR_INVALID_HANDLE;
}

static cuda_result query(struct gpushare_function *function, uint32_t block, size_t shared,
                         uint32_t *blocks)
{
    if (shared > UINT32_MAX)
        return CUDA_ERR_INVALID_VALUE;
    return driver_result(module_query_occupancy(function, block, (uint32_t)shared, blocks));
}

/* The one flag is about caching, which no device that is served here counts. */
cuda_result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, cuda_function handle,
                                                                 int block_size,
                                                                 size_t dynamic_shared_bytes,
                                                                 unsigned flags)
{
    struct gpushare_function *function;
    uint32_t found;
    DRIVER_TRY(check(handle, &function));
    if (!blocks || block_size <= 0 || flags > 1)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(query(function, (uint32_t)block_size, dynamic_shared_bytes, &found));
    *blocks = (int)found;
    return CUDA_OK;
}

cuda_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cuda_function handle,
                                                        int block_size, size_t dynamic_shared_bytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, block_size,
                                                                dynamic_shared_bytes, 0);
}

/* Of whole warps, the largest block of those with which a multiprocessor holds the most threads. */
cuda_result cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block_size,
                                                      cuda_function handle,
                                                      cuda_occupancy_shared shared_of,
                                                      size_t shared, int limit, unsigned flags)
{
    struct gpushare_function *function;
    uint32_t best = 0, best_blocks = 0, blocks;
    DRIVER_TRY(check(handle, &function));
    if (!min_grid || !block_size || limit < 0 || flags > 1)
        return CUDA_ERR_INVALID_VALUE;
    const struct gpushare_device *device = &function->connection->device;
    uint32_t warp = device->warp_threads, most = function->block_threads;
    if (limit && (uint32_t)limit < most)
        most = (uint32_t)limit;
    for (uint32_t size = (most + warp - 1) / warp * warp; size; size -= warp) {
        uint32_t threads = min(size, most);
        DRIVER_TRY(query(function, threads, shared_of ? shared_of((int)threads) : shared, &blocks));
        if ((uint64_t)blocks * threads > (uint64_t)best_blocks * best) {
            best = threads;
            best_blocks = blocks;
        }
        if (best_blocks * best == device->multiprocessor_threads)
            break;
    }
    *block_size = (int)best;
    *min_grid = (int)(best_blocks * atomic_load(&function->connection->multiprocessors));
    return CUDA_OK;
}

cuda_result cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block_size, cuda_function function,
                                             cuda_occupancy_shared shared_of, size_t shared,
                                             int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block_size, function, shared_of,
                                                     shared, limit, 0);
}

/* The most dynamic shared memory with which a multiprocessor still holds so many blocks: between
 * 0, with which it has to, and what a launch may ask for. */
cuda_result cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, cuda_function handle,
                                                    int num_blocks, int block_size)
{
    struct gpushare_function *function;
    uint32_t blocks;
    DRIVER_TRY(check(handle, &function));
    if (!bytes || num_blocks <= 0 || block_size <= 0)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(query(function, (uint32_t)block_size, 0, &blocks));
    if (blocks < (uint32_t)num_blocks)
        return CUDA_ERR_INVALID_VALUE;
    uint32_t fits = 0, above = atomic_load(&function->dynamic_shared) + 1;
    while (above - fits > 1) {
        uint32_t middle = fits + (above - fits) / 2;
        DRIVER_TRY(query(function, (uint32_t)block_size, middle, &blocks));
        if (blocks >= (uint32_t)num_blocks)
            fits = middle;
        else
            above = middle;
    }
    *bytes = fits;
    return CUDA_OK;
}
