/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/admission.h"

#include <errno.h>

#include "common/limits.h"
#include "common/util.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/rules.h"

static uint64_t share_of(uint64_t bytes, uint32_t share)
{
    return share ? limits_share(bytes, share) : PROTO_UNSET;
}

static uint32_t share_tighter(uint32_t granted, uint32_t asked)
{
    uint32_t tighter = limits_tighter_percentage(granted, asked);
    return tighter ? tighter : PROTO_PERCENT_WHOLE;
}

/* given: the administrator's request, or the value `unsaid`; asked: the client's, 0 if it has none.
 */
static uint64_t request_tighter(uint64_t given, uint64_t unsaid, uint64_t asked, uint64_t limit)
{
    if (given == unsaid)
        given = asked;
    else if (asked)
        given = min(given, asked);
    return min(given, limit);
}

static uint32_t request_share(uint32_t given, uint32_t asked, uint32_t limit)
{
    return (uint32_t)request_tighter(given, CONFIG_UNSAID, asked, limit);
}

/* The request of memory that the administrator gives, in bytes; PROTO_UNSET: none is configured. */
static uint64_t given_memory(const struct config_limits *limits, uint64_t device_bytes)
{
    uint64_t share = limits->memory_request_share == CONFIG_UNSAID
                         ? PROTO_UNSET
                         : limits_share(device_bytes, limits->memory_request_share);
    return min(limits->memory_request, share);
}

struct grant admission_grant(const struct admission *admission,
                             const struct proto_device_info *device,
                             const struct proto_attach *wish)
{
    const struct config_limits *limits = &admission->limits;
    uint64_t memory = limits_tighter(limits->memory, wish->memory_limit);
    uint64_t host = limits_tighter(limits->host_memory, wish->host_memory_limit);
    uint64_t most =
        admission->max_window ? admission->max_window : address_plan_round(device->memory);
    memory = min(memory, share_of(device->memory, limits->memory_share));
    memory = min(memory, device->memory);
    uint64_t window = address_plan_size(memory, host, most);
    struct grant grant = {
        .window_bytes = window,
        .thread_percentage = share_tighter(limits->threads, wish->thread_percentage),
        .priority = limits_tighter_priority(limits->priority, wish->priority),
        .time_limit = share_tighter(limits->time, wish->time_limit),
    };
    grant.memory_limit = min(memory, window);
    grant.host_limit = min(host, window);
    grant.memory_request = request_tighter(given_memory(limits, device->memory), PROTO_UNSET,
                                           wish->memory_request, grant.memory_limit);
    grant.host_request = request_tighter(limits->host_request, PROTO_UNSET,
                                         wish->host_memory_request, grant.host_limit);
    grant.thread_request =
        request_share(limits->thread_request, wish->thread_request, grant.thread_percentage);
    grant.time_request = request_share(limits->time_request, wish->time_request, grant.time_limit);
    return grant;
}

int admission_choose(const struct admission *admission, const struct config *config,
                     uint32_t device_index, const struct config_who *who,
                     const struct proto_device_info *device, const struct proto_attach *wish,
                     struct grant *grant)
{
    struct admission tightened = *admission;
    struct config_limits limits = config_limits_none;
    if (!config && *who->profile)
        return -ENOENT;
    int result = config ? config_rules_choose(config, device_index, who, &limits) : 0;
    if (result < 0)
        return result;
    config_limits_tighten(&tightened.limits, &limits);
    *grant = admission_grant(&tightened, device, wish);
    return 0;
}
