/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The block of a kernel that fills a multiprocessor best, from how many the library says that it
 * holds: nothing here knows a rule of a device. */
#include <stdint.h>

#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"
#include "common/util.h"

/* The one flag is about caching, which no device that is served here counts. */
cuda_result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                 cuda_function function,
                                                                 int block_size,
                                                                 size_t dynamic_shared_bytes,
                                                                 unsigned flags)
{
    return flags > 1 ? CUDA_ERR_INVALID_VALUE
                     : cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size,
                                                                   dynamic_shared_bytes);
}

/* The numbers that the largest block depends on. */
struct room {
    int block_threads, warp, multiprocessor_threads, multiprocessors;
};

static cuda_result measure(cuda_function function, struct room *room)
{
    cuda_device device;
    DRIVER_TRY(front_function_device(function, &device));
    DRIVER_TRY(cuFuncGetAttribute(&room->block_threads, CUDA_FUNC_MAX_THREADS_PER_BLOCK, function));
    DRIVER_TRY(cuDeviceGetAttribute(&room->warp, CUDA_ATTR_WARP_SIZE, device));
    DRIVER_TRY(cuDeviceGetAttribute(&room->multiprocessor_threads,
                                    CUDA_ATTR_MAX_THREADS_PER_MULTIPROCESSOR, device));
    return cuDeviceGetAttribute(&room->multiprocessors, CUDA_ATTR_MULTIPROCESSOR_COUNT, device);
}

/* Of whole warps, the largest block of those with which a multiprocessor holds the most threads. */
cuda_result cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block_size,
                                                      cuda_function function,
                                                      cuda_occupancy_shared shared_of,
                                                      size_t shared, int limit, unsigned flags)
{
    struct room room;
    int best = 0, best_blocks = 0, blocks;
    DRIVER_TRY(measure(function, &room));
    if (!min_grid || !block_size || limit < 0 || flags > 1)
        return CUDA_ERR_INVALID_VALUE;
    const int most = limit ? min(limit, room.block_threads) : room.block_threads;
    for (int size = (most + room.warp - 1) / room.warp * room.warp; size; size -= room.warp) {
        const int threads = min(size, most);
        DRIVER_TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, function, threads, shared_of ? shared_of(threads) : shared));
        if ((int64_t)blocks * threads > (int64_t)best_blocks * best) {
            best = threads;
            best_blocks = blocks;
        }
        if (best_blocks * best == room.multiprocessor_threads)
            break;
    }
    *block_size = best;
    *min_grid = best_blocks * room.multiprocessors;
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
cuda_result cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, cuda_function function,
                                                    int num_blocks, int block_size)
{
    int blocks, most;
    if (!bytes || num_blocks <= 0 || block_size <= 0)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block_size, 0));
    DRIVER_TRY(cuFuncGetAttribute(&most, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    if (blocks < num_blocks)
        return CUDA_ERR_INVALID_VALUE;
    size_t fits = 0, above = (size_t)most + 1;
    while (above - fits > 1) {
        size_t middle = fits + (above - fits) / 2;
        DRIVER_TRY(
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block_size, middle));
        if (blocks >= num_blocks)
            fits = middle;
        else
            above = middle;
    }
    *bytes = fits;
    return CUDA_OK;
}
