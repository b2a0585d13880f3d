/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/policy.h"

uint32_t policy_strict_cap(const struct scheduler_limits *limits)
{
    return limits->request ? PLAN_WHOLE : limits->limit;
}

/* A request is all that its client gets, so only clients without one get idle time. */
void policy_strict_choose(const struct scheduler *scheduler,
                          const struct scheduler_lease_group *lease_group, uint64_t now,
                          struct policy_choice *choice)
{
    policy_claims(scheduler, lease_group, now, choice);
    if (!choice->client)
        policy_extra(scheduler, lease_group, now, true, choice);
    policy_keep(scheduler, lease_group, now, choice);
}
