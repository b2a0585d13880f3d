/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * tracing: `gpusharectl trace`: asks the server for a trace and writes it to a file. One thread;
 * handles signals of the process while the trace runs.
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

/* What was traced, for people. */
struct tracing_summary {
    uint64_t records, lost, damaged;
    double seconds; /* how long the trace lasted */
    unsigned clients;
};

/* Reads "2.5" or "100". Returns 0, or -EINVAL if it is no time that a trace may last. */
int tracing_parse_seconds(const char *text, double *seconds);

/*
 * Opens the file, runs the trace, then writes the file. If it fails, a file that it made is
 * removed. The first SIGINT, SIGTERM or SIGHUP ends the trace early, and the file is written; a
 * signal that is ignored stays ignored. *answer is the caller's: the server's answer, or one of the
 * same form that says what went wrong here; NULL where memory is short.
 */
enum admin_outcome tracing_run(const struct tracing_options *options, json_t **answer,
                               struct tracing_summary *summary);

#endif
