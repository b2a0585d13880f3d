/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/overcommit.h"

#include <stdio.h>
#include <string.h>

#include "server/scheduler/lease_group.h"
#include "server/scheduler/plan.h"

/* "37 %", "12.5 %", "0.05 %" */
static const char *percent(char text[16], uint32_t hundredths)
{
    if (hundredths % 100 == 0)
        snprintf(text, 16, "%u %%", hundredths / 100);
    else if (hundredths % 10 == 0)
        snprintf(text, 16, "%u.%u %%", hundredths / 100, hundredths % 100 / 10);
    else
        snprintf(text, 16, "%u.%02u %%", hundredths / 100, hundredths % 100);
    return text;
}

/* What helps; room: how much could still be had, as text, or NULL. */
static void remedy(const char *room, char *why, size_t why_size)
{
    size_t used = strlen(why);
    if (room)
        snprintf(why + used, why_size - used, "ask for %s at most, or lower another request", room);
    else
        snprintf(why + used, why_size - used,
                 "nothing is left to ask for; an administrator can lower another request");
}

void overcommit_explain_time(const struct lease_group_sum *sum, uint32_t asked, char *why,
                             size_t why_size)
{
    char terms[96] = "", a[16], b[16], c[16];
    size_t used = 0;
    if (why_size == 0)
        return;
    for (uint32_t i = 0; i < sum->clients && i < 4; i++)
        used += (size_t)snprintf(terms + used, sizeof terms - used, "%s%s", i ? " + " : "",
                                 percent(a, sum->some[i]));
    if (sum->clients > 4)
        used += (size_t)snprintf(terms + used, sizeof terms - used, " + ...");
    if (sum->clients > 1)
        snprintf(terms + used, sizeof terms - used, " = %s", percent(a, sum->requests));
    snprintf(why, why_size,
             "time: the requests of %u other client%s there are %s; with the %s asked for that "
             "makes %s, more than 100 %%: ",
             sum->clients, sum->clients == 1 ? "" : "s", terms, percent(b, asked),
             percent(c, sum->requests + asked));
    remedy(sum->requests < PLAN_WHOLE ? percent(a, PLAN_WHOLE - sum->requests) : NULL, why,
           why_size);
}

void overcommit_explain_threads(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                                uint32_t sm_groups, uint32_t sm_group_size, char *why,
                                size_t why_size)
{
    char room[16];
    if (why_size == 0)
        return;
    snprintf(why, why_size,
             "threads: %u other client%s there %s %u of the device's %u groups of %u "
             "multiprocessors of their own; with the %u asked for that makes %u: ",
             others, others == 1 ? "" : "s", others == 1 ? "has" : "have", other_sm_groups,
             sm_groups, sm_group_size, asked, other_sm_groups + asked);
    snprintf(room, sizeof room, "%u", sm_groups - other_sm_groups);
    remedy(sm_groups > other_sm_groups ? room : NULL, why, why_size);
}
