/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * tracing: a trace of one device under way: its memory, its end, and who its clients
 * were, those that left meanwhile included.
 *
 * At most one a device. It ends by itself after its time, when its worker is lost, or
 * when the asker says so or is gone; a worker that does not answer is waited for a few
 * seconds only. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_TRACING_H
#define GPUSHARE_SERVER_SUPERVISOR_TRACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

struct device;
struct tracing;

struct trace_client {
    uint32_t number;
    char name[64]; /* control characters replaced */
    pid_t pid;     /* 0 if it is not visible from here */
    uid_t uid;
};

/* A trace: the work that ran on a device, recorded by its worker. */
struct trace {
    uint32_t device;
    uint64_t milliseconds;              /* as asked */
    int memory;                         /* read-only; the supervisor's own, closed after the call */
    const char *trouble;                /* why it ended before its time, or NULL */
    const struct trace_client *clients; /* that were attached at any time of it */
    size_t client_count;
};

/* error: 0, or a number of the error table, a sentence in text, and no trace. The trace is over
 * when this is called; its memory is not freed before control returns to the loop. */
typedef void trace_done(void *context, uint32_t error, const char *text, const struct trace *trace);

/* Whether a trace of the device could be started now: 0, or an error number with a sentence. */
uint32_t tracing_check(const struct device *device, struct error *why);

/*
 * Traces a device that tracing_check allows, for this time; device->tracing is set. done is called
 * exactly once, from the loop and never before this returns, unless the trace is abandoned. 0, or
 * an error number with a sentence (done is not called). by names the asker.
 */
uint32_t tracing_start(struct device *device, uint64_t milliseconds, const char *by,
                       trace_done *done, void *context, struct error *why);

/* This client has the device from now on. tracing: the device's, or NULL. */
void tracing_note(struct tracing *tracing, uint32_t number, const char *name, pid_t pid, uid_t uid);

/* Whether a trace (or NULL) is one whose done will be called with this context. */
bool tracing_is_for(const struct tracing *tracing, const void *context);

/* It is to end now, before its time: done is called, with that as its trouble. */
void tracing_stop(struct tracing *tracing);

/* It ends now, and done is not called any more. */
void tracing_abandon(struct tracing *tracing);

/* The device's worker is lost: the trace (or NULL) ends with what it has. */
void tracing_lost(struct tracing *tracing);

#endif
