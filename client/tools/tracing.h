/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * tracing: carries out `gpusharectl trace`, which asks the server for a trace and writes it to a
 * file. One thread. It handles the process's signals while the trace runs.
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

/* A summary of the trace, for people. */
struct tracing_summary {
    uint64_t records, lost, damaged;
    double seconds; /* how long the trace lasted */
    unsigned clients;
};

/* Reads a number of seconds, such as "2.5" or "100". Returns 0, or -EINVAL if no trace may last
 * so long. */
int tracing_parse_seconds(const char *text, double *seconds);

/*
 * Opens the file, runs the trace, then writes the file. If this fails, a file that it created is
 * removed. The first SIGINT, SIGTERM or SIGHUP ends the trace early, and the file is written. A
 * signal that is ignored stays ignored.
 *
 * The caller owns *answer: the server's answer, or an error in the same form that says what went
 * wrong here; NULL without memory.
 */
enum admin_outcome tracing_run(const struct tracing_options *options, json_t **answer,
                               struct tracing_summary *summary);

#endif
