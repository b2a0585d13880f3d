/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/overcommit.h"

#include <stdio.h>

#include "common/messages.h"
#include "server/scheduler/lease_group.h"
#include "server/scheduler/plan.h"

/* "37 %", "12.5 %", "0.05 %" */
static const char *percent_text(char text[16], uint32_t hundredths)
{
    if (hundredths % 100 == 0)
        snprintf(text, 16, "%u %%", hundredths / 100);
    else if (hundredths % 10 == 0)
        snprintf(text, 16, "%u.%u %%", hundredths / 100, hundredths % 100 / 10);
    else
        snprintf(text, 16, "%u.%02u %%", hundredths / 100, hundredths % 100);
    return text;
}

enum { REMEDY_BYTES = 80 };

/* Adds the remedy. room: the amount that is still free, as text, or NULL. */
static const char *remedy_text(const char *room, char text[REMEDY_BYTES])
{
    if (!room)
        return MESSAGE_TEXT(overcommit_whole);
    snprintf(text, REMEDY_BYTES, MESSAGE_TEXT(overcommit_part), room);
    return text;
}

uint32_t overcommit_explain_time(const struct lease_group_sum *sum, uint32_t asked,
                                 struct error *why)
{
    char terms[96] = "", a[16], b[16], c[16], remedy[REMEDY_BYTES];
    size_t used = 0;
    for (uint32_t i = 0; i < sum->clients && i < 4; i++)
        used += (size_t)snprintf(terms + used, sizeof terms - used, "%s%s", i ? " + " : "",
                                 percent_text(a, sum->some[i]));
    if (sum->clients > 4)
        used += (size_t)snprintf(terms + used, sizeof terms - used, " + ...");
    if (sum->clients > 1)
        snprintf(terms + used, sizeof terms - used, " = %s", percent_text(a, sum->requests));
    const char *room =
        sum->requests < PLAN_WHOLE ? percent_text(a, PLAN_WHOLE - sum->requests) : NULL;
    return error_set(why, MESSAGE(time_overcommitted), sum->clients, sum->clients == 1 ? "" : "s",
                     terms, percent_text(b, asked), percent_text(c, sum->requests + asked),
                     remedy_text(room, remedy));
}

uint32_t overcommit_explain_threads(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                                    uint32_t sm_groups, uint32_t sm_group_size, struct error *why)
{
    char room[16], remedy[REMEDY_BYTES];
    snprintf(room, sizeof room, "%u", sm_groups - other_sm_groups);
    return error_set(why, MESSAGE(threads_overcommitted), others, others == 1 ? "" : "s",
                     others == 1 ? "has" : "have", other_sm_groups, sm_groups, sm_group_size, asked,
                     other_sm_groups + asked,
                     remedy_text(sm_groups > other_sm_groups ? room : NULL, remedy));
}
