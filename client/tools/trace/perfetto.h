/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * perfetto: writes a recording as trace events in JSON, the form that Chrome's and Perfetto's
 * viewers open. Times are microseconds since the trace began. One thread.
 *
 * The GPU and each client are shown as a process. The GPU is process 1. It has a track for each
 * lease group, a track for each set of multiprocessors that work ran on, a track of the times
 * without a worker, and the number of clients in flight.
 *
 * A client is process 1 + its number. It has a track for each stream, a track for each reason for
 * which it had to wait, a track of its recoveries, and its multiprocessors. Slices of one track
 * never overlap. docs/gpusharectl.md has the names.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_TRACE_PERFETTO_H
#define GPUSHARE_CLIENT_TOOLS_TRACE_PERFETTO_H

#include <stdio.h>

#include <jansson.h>

#include "client/tools/trace/recording.h"

/*
 * Writes a recording to an open file, which stays the caller's. answer: the server's answer to the
 * request "trace", which names GPU and clients; a client that it does not name is shown by its
 * number. Returns 0, -ENOMEM, or -EIO if the file can't be written.
 */
int perfetto_write(FILE *file, const struct recording *recording, const json_t *answer);

#endif
