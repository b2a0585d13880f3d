/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sentences: the findings in words. Names from files are printed without characters that steer a
 * terminal. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_SENTENCES_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_SENTENCES_H

#include <stdio.h>

#include "client/tools/explain/findings.h"

/* Prints a line of a format MESSAGE_TEXT(name). */
void sentences_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a line with the names of libraries that were not found, one at least. */
void sentences_missing(FILE *out, const char *path, const char *const names[], size_t count);

/* Prints a line for each finding that a user has to know of, with its remedy. Returns how many of
 * them are in the program's way. */
unsigned sentences_say(FILE *out, const char *path, const struct findings *findings);

/* Prints all of that in one line. Returns the same. */
unsigned sentences_say_briefly(FILE *out, const char *path, const struct findings *findings);

#endif
