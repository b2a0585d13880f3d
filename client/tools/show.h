/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * show: prints the server's answers as text for people. A member that is missing or null is
 * printed as "-", so that a tool and a server of different versions work together. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_SHOW_H
#define GPUSHARE_CLIENT_TOOLS_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "client/tools/sample.h"
#include "client/tools/table.h"

/* The GPUs that are drained, a line each. answer: to "status". */
void show_drained(FILE *out, const json_t *answer);
/* The server's own warnings, a line each. answer: likewise. */
void show_server_warnings(FILE *out, const json_t *answer);
/* sample: for the table that fits a terminal; NULL: for the one with everything. */
void show_status(FILE *out, const json_t *answer, const struct sample *sample,
                 struct table_look look);
void show_clients(FILE *out, const json_t *answer, struct table_look look);
void show_limits(FILE *out, const json_t *answer, struct table_look look);
/* Prints the totals of a user, a group or a control group. sample: for the time and the
 * multiprocessors that a user's clients use now; NULL: these are not known. */
void show_total(FILE *out, const json_t *answer, const struct sample *sample,
                struct table_look look);
void show_gpus(FILE *out, const json_t *answer, struct table_look look);

/* Decides how tables look on this stream. no_color and term: the values of $NO_COLOR and $TERM,
 * or NULL. */
struct table_look show_look(FILE *out, const char *no_color, const char *term);

#endif
