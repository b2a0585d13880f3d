/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* trace: traces of devices, as an administrator asks for them. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_TRACE_H
#define GPUSHARE_SERVER_SUPERVISOR_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "server/supervisor/device/tracing.h"

struct supervisor;

/*
 * Traces a device for this time, at most PROTO_TRACE_SECONDS_MAX seconds. Returns 0: done is then
 * called exactly once, from the loop and never before this function returns, unless the trace is
 * abandoned. Returns an error number with a sentence in why if there is no such device, no worker
 * or no memory, or if the device is being traced: done is not called then.
 */
uint32_t trace_start(struct supervisor *supervisor, uint32_t device, uint64_t milliseconds,
                     const struct trace_asker *asker, struct error *why);

/* Ends early the trace that was started with this context. done is called as usual, and
 * trace->trouble says that the trace was cut short. Does nothing if there is no such trace. */
void trace_stop(struct supervisor *supervisor, const void *context);

/* Ends the trace that was started with this context, whose asker has gone. Returns whether there
 * was such a trace; its done is not called any more. */
bool trace_abandon(struct supervisor *supervisor, const void *context);

#endif
