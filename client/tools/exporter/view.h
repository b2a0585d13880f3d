/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * view: what the page of the exporter shows, as JSON. It asks the server about once a second at
 * most, and only when it is asked itself. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPORTER_VIEW_H
#define GPUSHARE_CLIENT_TOOLS_EXPORTER_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct view {
    const char *socket; /* the server's admin socket */
    json_t *users;      /* names by uid, of users that were looked up */
    char *text;         /* the latest document; NULL: none, or no memory */
    bool answered;      /* the document has numbers; else it is an error */
    uint64_t asked_at;  /* CLOCK_MONOTONIC; 0: never */
};

/* Starts with nothing asked. socket stays the caller's. */
void view_open(struct view *view, const char *socket);
void view_close(struct view *view);

/* Asks, unless the latest document is less than 0.9 s old. Waits three seconds at most. Returns
 * the document, which stays the view's and is valid until the next question; NULL without memory.
 * Its form is gpushare-exporter-status.schema.json; admin-error.schema.json if the server did not
 * answer. */
const char *view_ask(struct view *view);

#endif
