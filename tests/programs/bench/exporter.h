/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * exporter: gpushare-exporter beside a server of the bench, and requests to it over HTTP, as
 * Prometheus makes them. A function ends the program if the exporter does not listen or takes no
 * request. One thread at a time.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_EXPORTER_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_EXPORTER_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/support/server.h"

struct exporter;

/* Starts one, which listens on a port of 127.0.0.1 on return. */
struct exporter *exporter_start(const struct server *server);

/* Makes a request and reads the answer to its end. Returns the seconds from the first to the last.
 * The exporter keeps an answer for a second, so requests that shall cost the server something are
 * further apart. */
double exporter_scrape(struct exporter *exporter);

/* Whether the last answer has so many clients in the sum of the first user. */
bool exporter_has_clients(const struct exporter *exporter, int count);

void exporter_stop(struct exporter *exporter);

#endif
