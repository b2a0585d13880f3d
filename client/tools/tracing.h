/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * tracing: `gpusharectl trace`: asks the server for a trace and writes it to a file.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_TRACING_H
#define GPUSHARE_CLIENT_TOOLS_TRACING_H

#include <stdint.h>

#include <jansson.h>

#include "client/tools/admin_client.h"

#define TRACING_SECONDS_DEFAULT 5.0

struct tracing_options {
    const char *socket, *file;
    double seconds; /* 0.001 to PROTO_TRACE_SECONDS_MAX */
    uint32_t gpu;
};

/* What the answer and the file come to, for people. */
struct tracing_summary {
    uint64_t records, lost, damaged;
    double seconds; /* that the trace lasted */
    unsigned clients;
};

/* "2.5", "100": 0, or -EINVAL. */
int tracing_parse_seconds(const char *text, double *seconds);

/*
 * Opens the file first, then traces, then writes; a file that was made for nothing is
 * removed. The first SIGINT, SIGTERM or
 * SIGHUP ends the trace, which is written then; where these are ignored they stay so. *answer is
 * the server's, or one of its form that says what went wrong here; the caller's; NULL where memory
 * is short.
 */
enum admin_outcome tracing_run(const struct tracing_options *options, json_t **answer,
                               struct tracing_summary *summary);

#endif
