/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * block: one thread block in execution. All its state is in the object, so its execution can stop
 * at any instruction and continue later on another thread.
 *
 * The instruction side implements it. grid (device side) creates blocks, gives them turns, and
 * keeps the modelled clock. One thread at a time for each block.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_BLOCK_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_BLOCK_H

#include <stdint.h>

#include "server/softgpu/fault.h"
#include "server/softgpu/exec/module.h"

/* One launch. Its blocks only read it, and it outlives the last of them. */
struct block_launch {
    const struct function *function;
    uint32_t grid[3], threads[3];
    uint32_t dynamic_shared_bytes;
    const uint8_t *params;  /* function_info.param_bytes bytes */
    uint64_t grid_id;       /* %gridid */
    uint64_t workspace;     /* %envreg1 has its upper half, %envreg2 the lower one */
    uint32_t sm_count;      /* %nsmid */
    uint32_t device;        /* whose heap its kernels allocate from (memory_heap.h) */
    uint32_t timer_step_ns; /* %globaltimer moves by so much; 0: by nanoseconds */
};

enum block_state {
    BLOCK_READY, /* the budget is used up: call block_run again */
    /* every live warp sleeps (nanosleep), or waits at a barrier for one that sleeps */
    BLOCK_ASLEEP,
    BLOCK_DONE,
    BLOCK_FAULTED,
};

struct block;

/* Makes a block. index: the value of %ctaid. sm: the value of %smid. launch: stays the caller's.
 * Returns NULL without memory. */
struct block *block_create(const struct block_launch *launch, const uint32_t index[3], uint32_t sm);
void block_destroy(struct block *block);

/*
 * Runs the block for about `budget` warp instructions.
 *
 * clock_ns: in, the modelled time at this call; out, the modelled time reached. nanosleep of a warp
 * moves only the time at which that warp wakes; the rest of the block goes on. rate: modelled time
 * in picoseconds for each warp instruction; 0 if instructions cost nothing.
 *
 * %globaltimer reads *clock_ns as it stands at that instruction, in its steps. %clock and %clock64
 * count modelled cycles at 1 GHz, and still advance by one for each instruction if rate is 0.
 *
 * wake_ns: with BLOCK_ASLEEP, the modelled time at which to call again.
 * fault: with BLOCK_FAULTED, what happened.
 */
enum block_state block_run(struct block *block, uint64_t budget, uint64_t *clock_ns, uint32_t rate,
                           uint64_t *wake_ns, struct fault *fault);

/* nanosleep lasts so many thousandths of what it asks for: 1000 to begin with. `rate` is the
 * caller's to scale. */
void block_set_pace(struct block *block, uint32_t permille);

#endif
