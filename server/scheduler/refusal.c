/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/refusal.h"

#include <stdio.h>

#include "server/scheduler/lane.h"
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

void refusal_time(const struct lane_sum *sum, uint32_t asked, char *why, size_t why_size)
{
    char terms[96] = "", a[16], b[16], c[16], d[16];
    size_t used = 0;
    for (uint32_t i = 0; i < sum->clients && i < 4; i++)
        used += (size_t)snprintf(terms + used, sizeof terms - used, "%s%s", i ? " + " : "",
                                 percent(a, sum->some[i]));
    if (sum->clients > 4)
        used += (size_t)snprintf(terms + used, sizeof terms - used, " + ...");
    if (sum->clients > 1)
        snprintf(terms + used, sizeof terms - used, " = %s", percent(a, sum->requests));
    snprintf(why, why_size,
             "time: the requests of %u other client%s there are %s; with the %s asked for that "
             "makes %s, more than 100 %%: ask for %s at most, or lower another request",
             sum->clients, sum->clients == 1 ? "" : "s", terms, percent(b, asked),
             percent(c, sum->requests + asked),
             percent(d, sum->requests < PLAN_WHOLE ? PLAN_WHOLE - sum->requests : 0));
}

void refusal_threads(uint32_t others, uint32_t other_atoms, uint32_t asked, uint32_t atoms,
                     uint32_t atom_size, char *why, size_t why_size)
{
    snprintf(why, why_size,
             "threads: %u other client%s there %s %u of the device's %u groups of %u "
             "multiprocessors of their own; with the %u asked for that makes %u: ask for %u at "
             "most, or lower another request",
             others, others == 1 ? "" : "s", others == 1 ? "has" : "have", other_atoms, atoms,
             atom_size, asked, other_atoms + asked, atoms - other_atoms);
}
