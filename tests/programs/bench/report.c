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

static void print_measured(const struct row *row, const char *name,
                           const struct bench_result *result)
{
    char reach[32], ratio[32] = "-", yardstick[32] = "-";
    row_bounds(row, reach, sizeof reach);
    if (row->yardstick) {
        snprintf(ratio, sizeof ratio, "%.3f", result->ratio);
        snprintf(yardstick, sizeof yardstick, "%.5g", result->yardstick);
    }
    printf("%-38s %14.6g %-9s %12s %8s %9s %6.1f%%  ", name, result->value, row->unit, yardstick,
           ratio, reach, result->spread * 100);
    if (result->fault[0])
        printf("NOT MET: %s", result->fault);
    else
        printf("%s", !row_met(row, result) ? "NOT MET" : row->judged == STATED ? "stated" : "met");
    printf("%s%s\n", result->note[0] ? "; " : "", result->note);
}

void report_scene(const struct row *row, const struct report_scene *scene)
{
    const struct attempt *attempt = &scene->attempt;
    char name[80];
    if (scene->neighbours[0])
        snprintf(name, sizeof name, "  beside %s", scene->neighbours);
    else
        snprintf(name, sizeof name, "%s", row->name);
    if (attempt->measured)
        print_measured(row, name, &attempt->result);
    else
        printf("%-38s NOT MEASURED: %s\n", name, attempt->result.fault);
    if (attempt->switches[0])
        printf("    on %s\n", attempt->switches);
    fflush(stdout);
}

/* JSON knows no infinity. */
static json_t *number(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *scene_json(const struct row *row, const struct report_scene *scene)
{
    const struct attempt *attempt = &scene->attempt;
    const struct bench_result *result = &attempt->result;
    const bool known = attempt->measured, compared = known && row->yardstick;
    return json_pack("{s:s?, s:o, s:o, s:o, s:o, s:b, s:s?, s:s, s:s}", "neighbours",
                     scene->neighbours[0] ? scene->neighbours : NULL, "value",
                     number(known, result->value), "yardstick", number(compared, result->yardstick),
                     "ratio", number(compared, result->ratio), "spread",
                     number(known, result->spread), "met", row_met(row, result), "fault",
                     result->fault[0] ? result->fault : NULL, "note", result->note, "switches",
                     attempt->switches);
}

json_t *report_json(const struct row *row, const struct report_scene *judged,
                    const struct report_scene *scenes, size_t count)
{
    json_t *object = scene_json(row, judged), *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, scene_json(row, &scenes[i]));
    json_object_set_new(object, "name", json_string(row->name));
    json_object_set_new(object, "unit", json_string(row->unit));
    if (row->yardstick)
        json_object_set_new(object, "yardstick_is", json_string(row->yardstick));
    json_object_set_new(object, "scenes", list);
    return object;
}
