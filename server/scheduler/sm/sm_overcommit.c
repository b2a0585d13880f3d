/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/sm/sm_overcommit.h"

#include "common/messages.h"
#include "common/units.h"

uint32_t sm_overcommit_explain(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                               uint32_t sm_groups, uint32_t sm_group_size, uint32_t most,
                               struct error *why)
{
    char percent[UNITS_TEXT];
    uint32_t all = other_sm_groups + asked;
    if (sm_groups <= other_sm_groups)
        return error_set(why, MESSAGE(threads_overcommitted_whole), others, other_sm_groups,
                         sm_groups, sm_group_size, asked, all);
    return error_set(why, MESSAGE(threads_overcommitted), others, other_sm_groups, sm_groups,
                     sm_group_size, asked, all, sm_groups - other_sm_groups,
                     units_format_percentage(most, percent));
}

uint32_t sm_overcommit_explain_account(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                                       uint32_t sm_groups, uint32_t sm_group_size,
                                       struct error *why)
{
    if (!asked)
        return error_set(why, MESSAGE(threads_account_too_few), others, other_sm_groups,
                         sm_group_size, sm_groups);
    return error_set(why, MESSAGE(threads_account_overcommitted), others, other_sm_groups,
                     sm_groups, sm_group_size, asked, other_sm_groups + asked);
}
