/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * report: what the bench prints of a row, and what it writes into its file.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_REPORT_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_REPORT_H

#include <jansson.h>

#include "tests/programs/bench/attempt.h"
#include "tests/programs/bench/row.h"

/* Prints the head of the table. */
void report_head(void);

/* A row as it was measured in one scene. */
struct report_scene {
    char neighbours[64]; /* empty: none */
    struct attempt attempt;
};

/* Prints the row's line in this scene, and a second one with its servers' settings. */
void report_scene(const struct row *row, const struct report_scene *scene);

/* Makes the row's object in results.json: the members of the scene that it is judged by, and
 * "scenes" with those of all. Numbers that were not measured are null. The caller gives it to
 * json_decref. */
json_t *report_json(const struct row *row, const struct report_scene *judged,
                    const struct report_scene *scenes, size_t count);

#endif
