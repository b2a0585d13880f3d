/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/overcommit.h"

#include <stdio.h>

#include "common/messages.h"
#include "common/units.h"
#include "server/scheduler/account.h"
#include "server/scheduler/lease_group.h"
#include "server/scheduler/plan.h"

enum { PERCENT_TEXT = UNITS_TEXT + 2 };

/* "37 %", "12.5 %", "0.05 %" */
static const char *percent_text(char text[PERCENT_TEXT], uint32_t hundredths)
{
    char number[UNITS_TEXT];
    snprintf(text, PERCENT_TEXT, "%s %%", units_format_percentage(hundredths, number));
    return text;
}

uint32_t overcommit_explain_account(const struct scheduler_account *account, uint32_t others,
                                    uint32_t asked, struct error *why)
{
    char a[PERCENT_TEXT], b[PERCENT_TEXT], c[PERCENT_TEXT], d[PERCENT_TEXT];
    return error_set(why, MESSAGE(time_account_overcommitted), account->name,
                     percent_text(a, others), percent_text(b, asked),
                     percent_text(c, others + asked), percent_text(d, account->time_request));
}

uint32_t overcommit_explain_time(const struct lease_group_sum *sum,
                                 const struct scheduler_account *account, uint32_t asked,
                                 struct error *why)
{
    char terms[96] = "", a[PERCENT_TEXT], b[PERCENT_TEXT], c[PERCENT_TEXT];
    size_t used = 0;
    for (uint32_t i = 0; i < sum->holders && i < 4; i++)
        used += (size_t)snprintf(terms + used, sizeof terms - used, "%s%s", i ? " + " : "",
                                 percent_text(a, sum->some[i]));
    if (sum->holders > 4)
        used += (size_t)snprintf(terms + used, sizeof terms - used, " + ...");
    if (sum->holders > 1)
        snprintf(terms + used, sizeof terms - used, " = %s", percent_text(a, sum->requests));
    percent_text(b, asked);
    percent_text(c, sum->requests + asked);
    if (account)
        return error_set(why, MESSAGE(time_overcommitted_account), sum->holders, terms, b,
                         account->name, c);
    if (sum->requests >= PLAN_WHOLE)
        return error_set(why, MESSAGE(time_overcommitted_whole), sum->holders, terms, b, c);
    return error_set(why, MESSAGE(time_overcommitted), sum->holders, terms, b, c,
                     percent_text(a, PLAN_WHOLE - sum->requests));
}
