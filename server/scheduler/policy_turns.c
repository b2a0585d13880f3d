/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/policy.h"

#include "common/list.h"
#include "common/util.h"

static bool came_before(const struct scheduler_client *client, const struct scheduler_client *other)
{
    const struct scheduler_account *one = client->accounts.of[0], *two = other->accounts.of[0];
    return one == two ? client->ticket < other->ticket : one->ticket < two->ticket;
}

/* First come, first served, by account: a turn puts the client at the end of the list, and its
 * account behind the others. The overrun of the account's last turn is taken off this one. A tenth
 * of a turn always remains, so that no client is passed over for long. */
void policy_turns_choose(const struct scheduler *scheduler,
                         const struct scheduler_lease_group *lease_group, uint64_t now,
                         struct policy_choice *choice)
{
    (void)now;
    uint64_t quantum = scheduler->schedule.quantum_ns;
    struct scheduler_client *client;
    *choice = (struct policy_choice){.again_at = SCHEDULER_NEVER};
    LIST_FOR_EACH (client, &lease_group->wants, wants_link)
        if (!choice->client || came_before(client, choice->client))
            choice->client = client;
    if (!choice->client)
        return;
    uint64_t debt = choice->client->accounts.of[0]->debt_ns;
    uint64_t most = quantum - quantum / 10;
    choice->length_ns = quantum - min(debt, most);
}
