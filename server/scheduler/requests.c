/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/requests.h"

#include "common/list.h"
#include "server/scheduler/lease_group.h"
#include "server/scheduler/overcommit.h"

/* Whether the request fits beside those of the account's other clients. */
static uint32_t check_account(const struct scheduler *scheduler,
                              const struct scheduler_client *client, uint32_t request,
                              struct error *why)
{
    const struct scheduler_account *account = client->accounts.of[0];
    const struct scheduler_client *other;
    uint32_t others = 0;
    LIST_FOR_EACH (other, &scheduler->clients, link)
        if (other != client && other->accounts.of[0] == account)
            others += other->limits.request;
    return others + request <= account->time_request
               ? 0
               : overcommit_explain_account(account, others, request, why);
}

/* Whether a request fits beside the other requests in the lease group of these SM groups. The
 * client's own request is a part of its account's, if that has one. all: also where the account's
 * request is there already, with another client. */
static uint32_t check_sum(struct scheduler *scheduler, const struct scheduler_client *client,
                          uint32_t request, const struct sm_group_set *sm_groups, bool all,
                          struct error *why)
{
    const struct scheduler_account *account = client->accounts.of[0];
    struct lease_group_sum sum;
    uint32_t error =
        account->time_request && request ? check_account(scheduler, client, request, why) : 0;
    if (error)
        return error;
    uint32_t asked = account->time_request ? account->time_request : request;
    if (asked == 0)
        return 0;
    lease_group_sum(scheduler, client, sm_groups, &sum);
    if ((sum.has_account && !all) || sum.requests + asked <= PLAN_WHOLE)
        return 0;
    return overcommit_explain_time(&sum, account->time_request ? account : NULL, asked, why);
}

uint32_t requests_check_all(struct scheduler *scheduler, const struct scheduler_account *account,
                            struct error *why)
{
    const struct scheduler_client *client;
    uint32_t error = 0;
    LIST_FOR_EACH (client, &scheduler->clients, link)
        if (!error && (!account || client->accounts.of[0] == account))
            error =
                check_sum(scheduler, client, client->limits.request, &client->sm_groups, true, why);
    return error;
}

uint32_t requests_check(struct scheduler *scheduler, const struct scheduler_client *client,
                        uint32_t request, const struct sm_group_set *sm_groups, struct error *why)
{
    return check_sum(scheduler, client, request, sm_groups, false, why);
}

uint32_t requests_check_account(struct scheduler *scheduler, struct scheduler_account *account,
                                uint32_t request, struct error *why)
{
    uint32_t before = account->time_request;
    account->time_request = request;
    uint32_t error = requests_check_all(scheduler, account, why);
    account->time_request = before;
    return error;
}
