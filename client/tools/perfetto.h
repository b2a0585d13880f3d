/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * perfetto: a recording as trace events in JSON, the form that Chrome's and Perfetto's
 * viewers open. Times are microseconds since the trace began.
 *
 * A process each: the GPU (process 1: a track a lane of leases, a track for each set of
 * multiprocessors that work ran on, the number of clients in flight) and every client
 * (process 1 + its number: a track a stream, one for each reason it was held, its
 * multiprocessors). Slices of one track never overlap. docs/gpusharectl.md has the names.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_PERFETTO_H
#define GPUSHARE_CLIENT_TOOLS_PERFETTO_H

#include <stdio.h>

#include <jansson.h>

#include "client/tools/recording.h"

/*
 * answer: the server's to the request "trace", which names GPU and clients; a client that it does
 * not name shows with its number. Returns 0, -ENOMEM, or -EIO: the file's error.
 */
int perfetto_write(FILE *file, const struct recording *recording, const json_t *answer);

#endif
