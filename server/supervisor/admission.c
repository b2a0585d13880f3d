/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admission.h"

#include "common/limits.h"
#include "server/supervisor/address_plan.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct grant admission_grant(const struct admission *admission,
                             const struct proto_device_info *device,
                             const struct proto_attach *wish)
{
    uint64_t memory = limits_tighter(admission->memory_limit, wish->memory_limit);
    uint64_t host = limits_tighter(admission->host_limit, wish->host_memory_limit);
    uint64_t most =
        admission->max_window ? admission->max_window : address_plan_round(device->memory);
    uint32_t percentage =
        limits_tighter_percentage(admission->thread_percentage, wish->thread_percentage);
    memory = least(memory, device->memory);
    uint64_t window = address_plan_size(memory, host, most);
    return (struct grant){
        .memory_limit = least(memory, window),
        .host_limit = least(host, window),
        .window_bytes = window,
        .thread_percentage = percentage ? percentage : PROTO_PERCENT_WHOLE,
        .priority = limits_tighter_priority(admission->priority, wish->priority),
    };
}
