/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * result: what one step has said and how it ended, as the JSON object that is written to its file:
 *
 *   step, title, outcome, verdict, seconds, limit_seconds, ended
 *   assumptions  [{name, verdict: held|false|unknown, text}]
 *   checks       [{outcome, text}]           of gpushare itself
 *   measures     {name: {value, unit}}
 *   facts        {name: text}
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_RESULT_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_RESULT_H

#include <jansson.h>
#include <stdbool.h>

#include "tests/programs/gpu/step.h"

/* From best to worst within a step; result_exit_status() has the order among steps. */
enum outcome {
    OUTCOME_MEASURED, /* a question without a yes or no */
    OUTCOME_HELD,
    OUTCOME_PASSED,
    OUTCOME_NOT_RUN,
    OUTCOME_UNKNOWN, /* no verdict: killed, crashed, not to be had here */
    OUTCOME_NOT_MET,
    OUTCOME_FAILED,
    OUTCOME_FALSE,
    OUTCOMES
};

struct result {
    const struct step *step;
    json_t *json; /* owned; NULL: nothing is known of this step yet */
    enum outcome outcome;
    char call[80]; /* the driver call that the step has begun last */
};

const char *outcome_name(enum outcome outcome);

/* Begins anew, with nothing said. */
void result_begin(struct result *result, const struct step *step);

/* A line of the step's output without its line break. Returns whether it was one for the runner:
 * it begins with '@'; a malformed one counts as output. */
bool result_take_line(struct result *result, const char *line);

/* The step is over: ended is NULL for a normal end, else how it ended ("killed after 12 s").
 * Assumptions of the step that nothing was said of become unknown. */
void result_finish(struct result *result, double seconds, const char *ended);

/* For a finished step that was ended before its own limit: without a verdict that is worse than
 * "unknown" it counts as not run. how: as result_finish. */
void result_cut_short(struct result *result, const char *how);

/* The step was not tried; why: for its verdict. */
void result_not_run(struct result *result, const struct step *step, const char *why);

/* Takes over what an earlier run wrote; false: it is not the result of this step. */
bool result_load(struct result *result, const struct step *step, json_t *json);

const char *result_verdict(const struct result *result);

/* Takes json's members away. */
void result_clear(struct result *result);

/* 0 all held, passed or measured; 1 something is false, failed or not met; else 3 something is
 * unknown; else 4 something has not been run. */
int result_exit_status(const unsigned counts[OUTCOMES]);

#endif
