/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/sm/sm_overcommit.h"

#include "common/messages.h"
#include "common/units.h"

uint32_t sm_overcommit_explain(const struct sm_overcommit *sums, uint32_t most, struct error *why)
{
    char percent[UNITS_TEXT];
    uint32_t all = sums->other_sm_groups + sums->asked;
    if (sums->sm_groups <= sums->other_sm_groups)
        return error_set(why, MESSAGE(threads_overcommitted_whole), sums->others,
                         sums->other_sm_groups, sums->sm_groups, sums->sm_group_size, sums->asked,
                         all);
    return error_set(why, MESSAGE(threads_overcommitted), sums->others, sums->other_sm_groups,
                     sums->sm_groups, sums->sm_group_size, sums->asked, all,
                     sums->sm_groups - sums->other_sm_groups,
                     units_format_percentage(most, percent));
}

uint32_t sm_overcommit_explain_account(const struct sm_overcommit *sums, struct error *why)
{
    if (!sums->asked)
        return error_set(why, MESSAGE(threads_account_too_few), sums->others, sums->other_sm_groups,
                         sums->sm_group_size, sums->sm_groups);
    return error_set(why, MESSAGE(threads_account_overcommitted), sums->others,
                     sums->other_sm_groups, sums->sm_groups, sums->sm_group_size, sums->asked,
                     sums->other_sm_groups + sums->asked);
}
