/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admission.h"

#include "common/limits.h"
#include "server/supervisor/address_plan.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void admission_tighten(struct admission *admission, const struct config_limits *limits,
                       uint64_t device_bytes)
{
    admission->memory_limit = limits_tighter(admission->memory_limit, limits->memory);
    if (limits->memory_share) {
        unsigned __int128 share = (unsigned __int128)device_bytes * limits->memory_share;
        admission->memory_limit =
            limits_tighter(admission->memory_limit, (uint64_t)(share / PROTO_PERCENT_WHOLE));
    }
    admission->host_limit = limits_tighter(admission->host_limit, limits->host_memory);
    admission->thread_percentage =
        limits_tighter_percentage(admission->thread_percentage, limits->threads);
    admission->priority = limits_tighter_priority(admission->priority, limits->priority);
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
        .time_limit = PROTO_PERCENT_WHOLE,
    };
}
