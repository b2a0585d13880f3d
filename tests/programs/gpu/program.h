/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * program: another program that a step runs and whose output it judges. The output goes to a file
 * of its own, so that several can run at once, none waits for a reader, and what one has said is
 * there when the step is killed. $CHECKS_OUTPUTS, a folder in the results, holds these files.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_PROGRAM_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROGRAM_WORDS = 8 };

struct program {
    pid_t pid;
    int input;      /* the writer's end of its standard input, or -1 */
    char path[900]; /* of the output */
    char name[64];
    char last[300]; /* the output's last line that is not empty; set by program_wait */
    char line[300]; /* for program_line */
};

/* words end with NULL or at PROGRAM_WORDS; %F and %T at the beginning of one are this program's
 * folder's parent and the temporary folder. env: further "NAME=value", ends with NULL; NULL: none.
 * Ends the step if it can't be started. */
void program_start(struct program *program, const char *const words[PROGRAM_WORDS],
                   const char *const env[]);

/* Its standard input is a pipe, on which nothing comes until it ends: program_end_input(). */
void program_start_with_input(struct program *program, const char *const words[PROGRAM_WORDS],
                              const char *const env[]);
void program_end_input(struct program *program);

/* Returns once the output has a line that begins so, or the program has ended. */
void program_read_until(struct program *program, const char *start);

/* Its exit status; 128 and the signal's number if one ended it. */
int program_wait(struct program *program);

/* Whether the output holds this word. */
bool program_said(const struct program *program, const char *word);

/* The last line that holds it; "" if none does. */
const char *program_line(struct program *program, const char *word);

/* The last lines of the output, for the step's log. */
void program_print(const struct program *program);

#endif
