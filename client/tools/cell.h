/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cell: a member of the server's answer as the text of a table's cell. Each function writes into
 * the caller's buffer and returns it. A member that is missing, null or of another type is "-".
 * Control characters are replaced. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_CELL_H
#define GPUSHARE_CLIENT_TOOLS_CELL_H

#include <jansson.h>

enum { CELL_BYTES = 96 };

const char *cell_text(const json_t *object, const char *name, char cell[CELL_BYTES]);
const char *cell_integer(const json_t *object, const char *name, char cell[CELL_BYTES]);
/* The name of the user with this uid, or the number where this machine has no name for it. */
const char *cell_user(const json_t *object, const char *name, char cell[CELL_BYTES]);
/* "64 MiB" */
const char *cell_bytes(const json_t *object, const char *name, char cell[CELL_BYTES]);
/* "12.5 %" */
const char *cell_percent(const json_t *object, const char *name, char cell[CELL_BYTES]);
/* "1.250 s" */
const char *cell_seconds(const json_t *object, const char *name, char cell[CELL_BYTES]);
/* "3 h 20 min" */
const char *cell_duration(const json_t *object, const char *name, char cell[CELL_BYTES]);
/* Seconds in the form of the configuration, "50ms". */
const char *cell_time(const json_t *object, const char *name, char cell[CELL_BYTES]);

/* The same of a time that 0 lifts: "0". */
const char *cell_limit(const json_t *object, const char *name, char cell[CELL_BYTES]);

/* A resource's request and limit, "30 to 50 %" or "1 GiB to 4 GiB". A request of 0 is none. which:
 * the member of both that is meant, such as "granted_percent". */
const char *cell_shares(const json_t *resource, const char *which, char cell[CELL_BYTES]);
const char *cell_amounts(const json_t *resource, const char *which, char cell[CELL_BYTES]);

/* Cuts a cell that has more than `most` characters: the last one left becomes '+'. most: 1 at
 * least. */
const char *cell_cut(char cell[CELL_BYTES], unsigned most);

#endif
