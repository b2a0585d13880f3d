/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sync_memory: the allocations of which a program said that each operation without a stream is done
 * when its call returns (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS). Without that, CUDA's fills of device
 * memory and copies within the device return early. Any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_SYNC_MEMORY_H
#define GPUSHARE_COMMON_CUDA_SYNC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* An allocation. id: unique in the process, so that one which reuses the address is not mistaken
 * for it. */
struct sync_memory {
    uint64_t address, bytes, id;
};

/* Returns 0 or -ENOMEM. */
int sync_memory_set(const struct sync_memory *memory, bool on);
bool sync_memory_is_set(const struct sync_memory *memory);

/* Whether a call that touches this address has to wait. Costs a load while nothing is set. */
bool sync_memory_waits(uint64_t address);

/* The allocation that begins there is about to be freed. */
void sync_memory_forget(uint64_t address);

#endif
