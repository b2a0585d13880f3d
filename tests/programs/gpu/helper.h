/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * helper: a process that a step starts, hears and kills. It runs a part of the step (step.h), and
 * answers in single characters over its socket.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_HELPER_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_HELPER_H

/* ---- the step ---- */

struct helper {
    const char *part;
    int pid, pidfd, socket;
};

/* Starts this part of the step. `part` stays valid until helper_end. */
struct helper helper_start(const char *step, const char *part);

/* The helper's next answer. Ends the step if the helper is silent for too long. 0: it ended without
 * an answer. */
char helper_listen(const struct helper *helper);
/* The same, where an end without an answer ends the step. */
char helper_hear(const struct helper *helper);

/* Kills it. The milliseconds until its pidfd became readable, as a supervisor would wait. */
double helper_end(struct helper *helper);

/* ---- the helper itself ---- */

/* The helper ends if nobody hears it. */
void helper_answer(int socket, char what);

/* Returns never: for the end of a part. */
int helper_wait_to_be_killed(void);

#endif
