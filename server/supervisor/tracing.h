/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * tracing: a trace of one device under way: its memory, its end, and who its clients
 * were, those that left meanwhile included.
 *
 * At most one a device. It ends by itself after its time, when its worker is lost, or
 * when who asked for it says so or is gone; a worker that does not answer is waited for a few
 * seconds only. What supervisor.h declares of traces is carried out here. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_TRACING_H
#define GPUSHARE_SERVER_SUPERVISOR_TRACING_H

#include <stdint.h>
#include <sys/types.h>

#include "server/supervisor/supervisor.h"

struct device;
struct tracing;

/* This client has the device from now on. tracing: the device's, or NULL. */
void tracing_note(struct tracing *tracing, uint32_t number, const char *name, pid_t pid, uid_t uid);

/* The device's worker is lost: the trace, if there is one, ends with what it has. */
void tracing_lost(struct tracing *tracing);

#endif
