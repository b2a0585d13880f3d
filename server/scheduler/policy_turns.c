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

/* The first client with work, of this account; NULL: of any. */
static struct scheduler_client *first_of(const struct scheduler_lease_group *lease_group,
                                         const struct scheduler_account *account)
{
    struct scheduler_client *client, *first = NULL;
    LIST_FOR_EACH (client, &lease_group->wants, wants_link)
        if ((!account || client->accounts.of[0] == account) &&
            (!first || came_before(client, first)))
            first = client;
    return first;
}

/* The overrun of the account's last turn is taken off this one. A tenth of a turn always remains,
 * so that no client is passed over for long. */
static uint64_t length_of(uint64_t quantum, const struct scheduler_account *account)
{
    return quantum - min(account->debt_ns, quantum - quantum / 10);
}

/* First come, first served, by account: a turn puts the client at the end of the list, and its
 * account behind the others. The rest of a turn belongs to the account: to another of its clients,
 * or to the same one after a short pause, in which somebody else is a guest. */
void policy_turns_choose(const struct scheduler *scheduler,
                         const struct scheduler_lease_group *lease_group, uint64_t now,
                         struct policy_choice *choice)
{
    const struct scheduler_turn *turn = &lease_group->turn;
    uint64_t quantum = scheduler->schedule.quantum_ns;
    *choice = (struct policy_choice){.again_at = SCHEDULER_NEVER};
    if (turn->account && now < turn->ends) {
        uint64_t back_by = min(turn->ends, turn->idle_since + quantum / 10);
        choice->client = first_of(lease_group, turn->account);
        choice->goes_on = choice->client;
        choice->length_ns = turn->ends - now;
        if (!choice->client && now < back_by) {
            choice->client = first_of(lease_group, NULL);
            choice->guest = true;
            choice->length_ns = back_by - now;
        }
    }
    if (choice->client)
        return;
    choice->client = first_of(lease_group, NULL);
    if (choice->client)
        choice->length_ns = length_of(quantum, choice->client->accounts.of[0]);
}
