/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/sums.h"

#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/rules.h"

/* Whether an earlier place than this range of this entry has the user alone. */
static bool is_counted(const struct config *config, size_t entry, size_t range, uint32_t uid)
{
    for (size_t i = 0; i <= entry; i++) {
        const struct config_total *total = &config->users[i];
        const size_t count = i == entry ? range : total->id_count;
        for (size_t k = 0; k < count; k++)
            if (total->ids[k].first == uid && total->ids[k].last == uid)
                return true;
    }
    return false;
}

static void add_user(const struct config *config, enum resource resource, uint32_t uid,
                     struct config_sum *sum)
{
    struct allowance limits;
    config_rules_total(config->users, config->user_count, uid, &limits);
    const struct allowance_range *range = &limits.of[resource];
    if (range->request == ALLOWANCE_UNSET || range->request == 0)
        return;
    sum->users++;
    /* An unset limit is above everything. */
    sum->request += min(range->request, range->limit);
}

struct config_sum config_sums_of_users(const struct config *config, enum resource resource)
{
    struct config_sum sum = {0};
    for (size_t i = 0; i < config->user_count; i++)
        for (size_t k = 0; k < config->users[i].id_count; k++) {
            const struct config_range *ids = &config->users[i].ids[k];
            if (ids->first == ids->last && !is_counted(config, i, k, ids->first))
                add_user(config, resource, ids->first, &sum);
        }
    return sum;
}

bool config_sums_exceed(const struct config *config, enum resource resource, struct error *why)
{
    const struct config_sum sum = config_sums_of_users(config, resource);
    char percent[UNITS_TEXT];
    if (sum.request <= PROTO_PERCENT_WHOLE)
        return false;
    units_format_percentage((uint32_t)min(sum.request, (uint64_t)UINT32_MAX), percent);
    if (resource == RESOURCE_TIME)
        error_set(why, MESSAGE(config_users_time), config->file, sum.users, percent);
    else
        error_set(why, MESSAGE(config_users_threads), config->file, sum.users, percent);
    return true;
}
