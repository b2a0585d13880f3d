/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * show: the server's answers as text for people. A member that is missing or null is
 * shown as "-", so that a tool and a server of different versions get along.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_SHOW_H
#define GPUSHARE_CLIENT_TOOLS_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "client/tools/table.h"

void show_status(FILE *out, const json_t *answer, struct table_look look);
void show_clients(FILE *out, const json_t *answer, struct table_look look);
void show_limits(FILE *out, const json_t *answer, struct table_look look);
/* Of a user or a group: what all its clients have together. */
void show_total(FILE *out, const json_t *answer, struct table_look look);
void show_gpus(FILE *out, const json_t *answer, struct table_look look);

/* How tables look on this stream. no_color, term: $NO_COLOR and $TERM. */
struct table_look show_look(FILE *out, const char *no_color, const char *term);

#endif
