/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/launch_width.h"

#include "common/util.h"
#include "protocol.h"
#include "server/scheduler/scheduler.h"
#include "server/worker/client/client.h"

/* Each architecture since Volta has at least this: CUDA C Programming Guide, "Technical
 * Specifications per Compute Capability". */
#define REGISTERS  65536u
#define BLOCKS_MAX 16u
/* Shared memory of a block that the driver keeps for itself, since compute capability 8.0. */
#define SHARED_RESERVED 1024u

static uint32_t count_fitting(uint32_t whole, uint64_t each)
{
    return each ? (uint32_t)(whole / each) : BLOCKS_MAX;
}

/* Blocks of the kernel that a multiprocessor holds at once. */
static uint32_t blocks_at_once(const struct proto_device_info *info,
                               const struct function *function,
                               const struct proto_command_launch *launch)
{
    uint32_t threads = (uint32_t)launch->block[0] * launch->block[1] * launch->block[2];
    uint32_t warps = (threads + 31) / 32;
    uint64_t shared = (uint64_t)function->shared_bytes + launch->shared_bytes;
    uint32_t blocks = min(BLOCKS_MAX, count_fitting(info->multiprocessor_threads, warps * 32u));
    blocks = min(blocks, count_fitting(REGISTERS, (uint64_t)function->registers * warps * 32));
    if (shared)
        blocks =
            min(blocks, count_fitting(info->multiprocessor_shared_bytes, shared + SHARED_RESERVED));
    return max(blocks, 1u);
}

uint32_t launch_width(const struct proto_device_info *info, const struct function *function,
                      const struct proto_command_launch *launch, uint32_t multiprocessors)
{
    uint64_t room = (uint64_t)blocks_at_once(info, function, launch) * max(multiprocessors, 1u);
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1];
    /* A grid has up to 2^31 x 2^32 blocks in all; only those that fit at once matter. */
    blocks = min(blocks, room) * launch->grid[2];
    return (uint32_t)max(min(blocks, room) * SCHEDULER_WIDTH / room, UINT64_C(1));
}
