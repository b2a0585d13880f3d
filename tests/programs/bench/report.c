/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/report.h"

#include <math.h>
#include <stdio.h>

void report_head(void)
{
    printf("%-38s %14s %-9s %12s %8s %9s %7s  %s\n", "row", "value", "unit", "yardstick", "ratio",
           "reach", "spread", "");
}

static void print_measured(const struct row *row, const struct bench_result *result)
{
    char reach[32], ratio[32] = "-", yardstick[32] = "-";
    row_bounds(row, reach, sizeof reach);
    if (row->yardstick) {
        snprintf(ratio, sizeof ratio, "%.3f", result->ratio);
        snprintf(yardstick, sizeof yardstick, "%.5g", result->yardstick);
    }
    printf("%-38s %14.6g %-9s %12s %8s %9s %6.1f%%  ", row->name, result->value, row->unit,
           yardstick, ratio, reach, result->spread * 100);
    if (result->fault[0])
        printf("NOT MET: %s", result->fault);
    else
        printf("%s", !row_met(row, result) ? "NOT MET" : row->judged == STATED ? "stated" : "met");
    printf("%s%s\n", result->note[0] ? "; " : "", result->note);
}

void report_row(const struct row *row, const struct attempt *attempt)
{
    if (attempt->measured)
        print_measured(row, &attempt->result);
    else
        printf("%-38s NOT MEASURED: %s\n", row->name, attempt->result.fault);
    if (attempt->switches[0])
        printf("    on %s\n", attempt->switches);
    fflush(stdout);
}

/* JSON knows no infinity. */
static json_t *number(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

json_t *report_json(const struct row *row, const struct attempt *attempt)
{
    const struct bench_result *result = &attempt->result;
    const bool known = attempt->measured, compared = known && row->yardstick;
    return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:s*, s:b, s:s?, s:s, s:s}", "name", row->name,
                     "value", number(known, result->value), "unit", row->unit, "yardstick",
                     number(compared, result->yardstick), "ratio", number(compared, result->ratio),
                     "spread", number(known, result->spread), "yardstick_is", row->yardstick, "met",
                     known && row_met(row, result), "fault",
                     result->fault[0] ? result->fault : NULL, "note", result->note, "switches",
                     attempt->switches);
}
