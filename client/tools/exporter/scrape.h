/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * scrape: asks the server for its metrics, at most once a second whoever wants them, and each time
 * anew: a server that was started again is found by the next question. One thread at a time.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPORTER_SCRAPE_H
#define GPUSHARE_CLIENT_TOOLS_EXPORTER_SCRAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "client/tools/metrics/metrics.h"

struct scrape {
    const char *socket; /* the server's admin socket */
    uint32_t clients;   /* with series of their own */
    json_t *answer;     /* the latest; NULL: the server did not answer */
    uint64_t asked_at;  /* CLOCK_MONOTONIC; 0: never */
    struct metrics_asking asking;
};

/* Starts with nothing asked. socket stays the caller's. */
void scrape_open(struct scrape *scrape, const char *socket, uint32_t clients);
void scrape_close(struct scrape *scrape);

/* Asks, unless the latest answer is fresh. Waits five seconds at most. Returns whether the server
 * answered. The log says when that changes. */
bool scrape_ask(struct scrape *scrape);

/* The latest answer as text, which the caller frees; NULL without memory. */
char *scrape_text(struct scrape *scrape, enum exposition_form form, size_t *length);

#endif
