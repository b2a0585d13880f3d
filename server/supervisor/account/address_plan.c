/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/address_plan.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "common/ipc/arena.h"
#include "common/util.h"

static bool power_of_two(uint64_t value)
{
    return value && !(value & (value - 1));
}

int address_plan_open(struct address_plan *plan, uint64_t device_base, uint64_t host_base,
                      uint64_t bytes)
{
    *plan = (struct address_plan){.device_base = device_base, .host_base = host_base};
    if (bytes < ADDRESS_PLAN_SMALLEST || !power_of_two(bytes) ||
        !ARENA_PAIR_VALID(device_base, host_base, bytes))
        return -EINVAL;
    plan->bytes = bytes;
    return 0;
}

void address_plan_close(struct address_plan *plan)
{
    assert(!plan->first && plan->windows == 0);
    plan->bytes = 0;
}

int address_plan_take(struct address_plan *plan, struct address_window *window, uint64_t bytes,
                      uint64_t from)
{
    if (!power_of_two(bytes) || window->bytes)
        return -EINVAL;
    if (bytes > plan->bytes || from > plan->bytes - bytes)
        return ADDRESS_PLAN_FULL;
    struct address_window *before = NULL, *after = plan->first;
    uint64_t offset = (from + bytes - 1) & ~(bytes - 1);
    for (; after; before = after, after = after->next) {
        if (offset <= after->offset && bytes <= after->offset - offset)
            break;
        uint64_t end = after->offset + after->bytes;
        if (end > offset)
            offset = (end + bytes - 1) & ~(bytes - 1);
    }
    if (offset > plan->bytes - bytes)
        return ADDRESS_PLAN_FULL;
    *window = (struct address_window){
        .offset = offset, .bytes = bytes, .previous = before, .next = after};
    if (before)
        before->next = window;
    else
        plan->first = window;
    if (after)
        after->previous = window;
    plan->windows++;
    return 0;
}

int address_plan_take_at(struct address_plan *plan, struct address_window *window, uint64_t offset,
                         uint64_t bytes)
{
    int result = address_plan_take(plan, window, bytes, offset);
    if (result == 0 && window->offset != offset) {
        address_plan_return(plan, window);
        return ADDRESS_PLAN_FULL;
    }
    return result;
}

void address_plan_return(struct address_plan *plan, struct address_window *window)
{
    if (!window->bytes)
        return;
    if (window->previous)
        window->previous->next = window->next;
    else
        plan->first = window->next;
    if (window->next)
        window->next->previous = window->previous;
    plan->windows--;
    *window = (struct address_window){0};
}

void address_plan_move(struct address_plan *plan, struct address_window *from,
                       struct address_window *to)
{
    *to = *from;
    if (to->previous)
        to->previous->next = to;
    else
        plan->first = to;
    if (to->next)
        to->next->previous = to;
    *from = (struct address_window){0};
}

uint64_t address_plan_device(const struct address_plan *plan, const struct address_window *window)
{
    return plan->device_base + window->offset;
}

uint64_t address_plan_host(const struct address_plan *plan, const struct address_window *window)
{
    return plan->host_base + window->offset;
}

uint64_t address_plan_round(uint64_t value)
{
    if (value <= 1)
        return 1;
    int bits = 64 - __builtin_clzll(value - 1);
    return bits > 63 ? 0 : UINT64_C(1) << bits;
}

uint64_t address_plan_size(uint64_t device_limit, uint64_t host_limit, uint64_t window_max)
{
    uint64_t larger = max(device_limit, host_limit);
    uint64_t size = larger > UINT64_MAX / 2 ? 0 : address_plan_round(2 * larger);
    return max(size ? min(size, window_max) : window_max, ADDRESS_PLAN_SMALLEST);
}
