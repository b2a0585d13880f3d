/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory: device memory of the software GPU, and what of it a kernel may touch.
 *
 * A device address is the host address of the same bytes (memfd pages mapped at
 * the reserved address), so that a checked access is a plain load or store.
 * The device side owns this module; the instruction side only calls
 * memory_find() and memory_generation().
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

enum { MEMORY_READ = 1, MEMORY_WRITE = 2 };

struct memory_range {
    uint64_t start, end; /* [start, end): one live allocation, or registered host memory */
    uint32_t access;     /* MEMORY_READ | MEMORY_WRITE */
};

/*
 * Finds the live range that holds address. False if none does: the access is a
 * fault. Any thread. A result is valid while memory_generation() is unchanged.
 */
bool memory_find(uint64_t address, struct memory_range *range);

/* Grows whenever any range appears, vanishes or changes its access. Any thread. */
uint64_t memory_generation(void);

#endif
