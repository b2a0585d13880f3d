/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/policy.h"

#include "common/list.h"

/* First come, first served: a turn puts its client at the end of the list. The overrun of the
 * client's last turn is taken off this one. A tenth of a turn always remains, so that no client
 * is passed over for long. */
void policy_turns_choose(const struct scheduler *scheduler,
                         const struct scheduler_lease_group *lease_group, uint64_t now,
                         struct policy_choice *choice)
{
    (void)now;
    uint64_t quantum = scheduler->schedule.quantum_ns;
    *choice = (struct policy_choice){.again_at = SCHEDULER_NEVER};
    choice->client = LIST_FIRST(&lease_group->wants, struct scheduler_client, wants_link);
    if (!choice->client)
        return;
    uint64_t debt = choice->client->debt_ns;
    uint64_t most = quantum - quantum / 10;
    choice->length_ns = quantum - min(debt, most);
}
