/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * tracing: a trace of one device while it is under way: its memory, its end, and the clients that
 * the device had meanwhile, those that left included.
 *
 * A device has at most one trace. A trace ends after its time, or when the asker ends it or is
 * gone. Where the worker is lost the next one goes on with it, in the same memory. A worker that
 * does not answer is waited for only a few seconds. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_TRACING_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_TRACING_H

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
    int memory;                         /* read-only; the supervisor closes it after the call */
    const char *trouble;                /* why the trace ended before its time, or NULL */
    const struct trace_client *clients; /* clients that were attached at any time of the trace */
    size_t client_count;
};

/* error: 0 and a trace; or an error number with a sentence in text, and trace is NULL. The trace is
 * over when this is called. Its memory is not freed before control returns to the loop. */
typedef void trace_done(void *context, uint32_t error, const char *text, const struct trace *trace);

/* Read during the call alone that gets it. */
struct trace_asker {
    const char *by; /* for the log */
    trace_done *done;
    void *context;
};

/* Whether a trace of the device could be started now: 0, or an error number that *why explains. */
uint32_t tracing_check(const struct device *device, struct error *why);

/*
 * Traces a device that tracing_check allows, for this time, and sets device->tracing. Returns 0:
 * done is then called exactly once, from the loop and never before this function returns, unless
 * the trace is abandoned. Returns an error number that *why explains: done is not called then.
 */
uint32_t tracing_start(struct device *device, uint64_t milliseconds,
                       const struct trace_asker *asker, struct error *why);

/* Notes a client that has the device from now on. tracing: the device's, or NULL. */
void tracing_note(struct tracing *tracing, uint32_t number, const char *name, pid_t pid, uid_t uid);

/* Whether this trace's done will be called with this context. tracing may be NULL. */
bool tracing_is_for(const struct tracing *tracing, const void *context);

/* Ends the trace before its time. done is called as usual, and trace->trouble says that the trace
 * was cut short. */
void tracing_stop(struct tracing *tracing);

/* Ends the trace at once; done is not called any more. */
void tracing_abandon(struct tracing *tracing);

/*
 * The device's worker is lost. A trace that runs waits for the next worker until its time is over,
 * and then ends with the records it has. One that has not begun is refused: nothing was recorded,
 * and its asker may try again. One that was ending, and any where the device stops, ends now.
 * tracing may be NULL.
 */
void tracing_lost(struct tracing *tracing);

/* The device has a worker that serves: it goes on with a trace that waits for one. Before the
 * worker is told of clients, so that their recovery is recorded. tracing may be NULL. */
void tracing_go_on(struct tracing *tracing);

#endif
