/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * address_plan: which client owns which addresses, over all devices.
 *
 * A window is a power of two of bytes, aligned to its size, at the same offset of the device arena
 * and of the host arena. No two windows overlap, even if their clients are on different devices.
 * Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_ADDRESS_PLAN_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_ADDRESS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* The smallest window: room for one allocation of each size class. */
#define ADDRESS_PLAN_SMALLEST (UINT64_C(1) << 24)

/* Embedded in its owner; in the plan's list while it is held. That list is sorted, and a search
 * looks at the gap between a window and the one before it, so it is no list.h. */
struct address_window {
    uint64_t offset;
    uint64_t bytes; /* 0 while nothing is held */
    struct address_window *previous, *next;
};

struct address_plan {
    uint64_t device_base;
    uint64_t host_base;
    uint64_t bytes;
    struct address_window *first; /* in the order of offsets */
    uint32_t windows;
};

enum { ADDRESS_PLAN_FULL = 1 };

/* Makes an empty plan. The bases differ in one bit and are multiples of bytes, which is a power of
 * two. Returns 0 or -EINVAL. */
int address_plan_open(struct address_plan *plan, uint64_t device_base, uint64_t host_base,
                      uint64_t bytes);

/* Every window must have been given back; an assertion checks that. */
void address_plan_close(struct address_plan *plan);

/*
 * Takes the first free window of this size (a power of two) at or above the offset `from`. *window
 * must not hold addresses. Returns 0; ADDRESS_PLAN_FULL; or -EINVAL for another size or a window
 * that is held already.
 */
int address_plan_take(struct address_plan *plan, struct address_window *window, uint64_t bytes,
                      uint64_t from);

/* Takes exactly the window at this offset. Returns 0; ADDRESS_PLAN_FULL: part of it is taken; or
 * -EINVAL. */
int address_plan_take_at(struct address_plan *plan, struct address_window *window, uint64_t offset,
                         uint64_t bytes);

/* Gives a window back. Idempotent. */
void address_plan_return(struct address_plan *plan, struct address_window *window);

/* A window changes its owner: *to, which holds no addresses, has them instead of *from. */
void address_plan_move(struct address_plan *plan, struct address_window *from,
                       struct address_window *to);

/* The addresses at which a held window begins, in the device arena and in the host arena. */
uint64_t address_plan_device(const struct address_plan *plan, const struct address_window *window);
uint64_t address_plan_host(const struct address_plan *plan, const struct address_window *window);

/*
 * The size of the window for these limits: the next power of two at or above twice the larger
 * limit, so that fragmentation does not bite before the limit does. At most window_max (a power of
 * two), and at least ADDRESS_PLAN_SMALLEST.
 */
uint64_t address_plan_size(uint64_t device_limit, uint64_t host_limit, uint64_t window_max);

/* The next power of two at or above value; 0 if that needs more than 64 bits. */
uint64_t address_plan_round(uint64_t value);

#endif
