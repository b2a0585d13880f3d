/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * report: the results folder. Each step's result is written as soon as it ends: STEP.json, its
 * output STEP.log, then the page page.md and results.json of all that is known. Nothing is
 * deleted: a step that runs again leaves its earlier result as STEP.json.1, .2 and so on. The
 * folder outputs/ in it, named by $CHECKS_OUTPUTS, takes what programs of steps print.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_REPORT_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_REPORT_H

#include <stdio.h>

#include "tests/programs/gpu/result.h"

struct report {
    char folder[400];
    char driver[400];
    struct result *results; /* one for each step of the table */
    int lock;               /* the folder, locked as long as this report is open */
};

/*
 * Opens the folder, which is made if it is not there, and reads what earlier runs left in it.
 * folder NULL: a new one in the current folder, named by date and time; resume: the newest such
 * one that is there instead. 0; or -errno, with a sentence on standard error.
 */
int report_open(struct report *report, const char *folder, bool resume, const char *driver);

struct result *report_result(struct report *report, const struct step *step);

/* The step's log, to be closed by the caller; NULL if it can't be written (said on standard
 * error). */
FILE *report_open_log(struct report *report, const struct step *step);

/* Writes the step's result and then the page; 0 or -errno (said on standard error). */
int report_save(struct report *report, const struct step *step);

/* How many steps of these results have each outcome. */
void report_count(const struct report *report, unsigned counts[OUTCOMES]);

void report_close(struct report *report);

#endif
