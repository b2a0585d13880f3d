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
 * Traces a device for this time (at most PROTO_TRACE_SECONDS_MAX seconds). done is called exactly
 * once, from the loop and never before this returns, unless the trace is abandoned. Returns 0, or
 * an error number with a sentence in why (done is not called): no such device, no worker, another
 * trace of it under way, no memory. by names who asked.
 */
uint32_t trace_start(struct supervisor *supervisor, uint32_t device, uint64_t milliseconds,
                     const char *by, trace_done *done, void *context, struct error *why);

/* Ends the trace that was started with this context before its time: done is called as usual, and
 * trace->trouble says that it was cut short. Does nothing where there is none. */
void trace_stop(struct supervisor *supervisor, const void *context);

/* Ends the trace that was started with this context, whose asker is gone. Returns whether there was
 * one: then done is not called any more. */
bool trace_abandon(struct supervisor *supervisor, const void *context);

#endif
