/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runner: runs one step in a process and process group of its own, within its time.
 *
 * A driver can hang where no signal reaches it. So the runner never waits for a step longer than
 * its limit and a few seconds: what can't be killed is named and left behind, and the rest goes
 * on. The runner itself never opens a driver.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_RUNNER_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_RUNNER_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/programs/gpu/result.h"

/* For the whole program, once: orphans of steps become children of this process, so that it can
 * end them; SIGINT, SIGTERM and SIGHUP end the step that runs and then runner_stopped() is true. */
void runner_open(void);
bool runner_stopped(void);

enum runner_end { RUNNER_ENDED, RUNNER_OVERDUE, RUNNER_STOPPED };

/* Runs the step on this driver; its lines go into result, its whole output into log (NULL: none).
 * Returns whether it came to an end by itself. */
enum runner_end runner_run(const struct step *step, const char *library, double limit_s, FILE *log,
                           struct result *result);

#endif
