/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * supervisor: the whole server but its main(): devices with their workers, clients
 * with what they own, and the limits between them. It never calls CUDA.
 *
 * Its life is here; clients, view, change, owner_total, trace and reload are what the
 * rest of the process asks of it. Everything runs on the thread of one libuv loop.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_H
#define GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_H

#include <stddef.h>

#include <uv.h>

#include "common/error.h"

struct settings;
struct discovery;
struct supervisor;

/* The supervisor's callbacks to its owner. Each is called from the loop, but for supervisor_stop's
 * own `stopped`. The callee may stop the supervisor; it frees it when the loop has ended. */
struct supervisor_events {
    /* The first device of all serves clients. Once. */
    void (*ready)(void *context);
    /* A sentence about the present state, for systemd's STATUS=. Often. */
    void (*status)(void *context, const char *text);
    /* No device could be started; text says what is wrong with the driver. The caller stops. */
    void (*unusable)(void *context, const char *text);
    /* supervisor_stop is complete: no client, no worker, no open handle is left. */
    void (*stopped)(void *context);
    void *context;
};

/*
 * Makes the supervisor; settings are borrowed and must outlive it. Nothing is
 * started yet. Returns 0 or -errno.
 */
int supervisor_create(struct supervisor **out, uv_loop_t *loop, const struct settings *settings,
                      const struct supervisor_events *events);

/*
 * Starts a worker for each device. Clients may be listened for before. Returns 0, or
 * an error number that *why explains; supervisor_stop is due then.
 */
uint32_t supervisor_start(struct supervisor *supervisor, const struct discovery *discovery,
                          struct error *why);

/* Ends every client (connection_lost) and every worker, then reports `stopped`. Idempotent. */
void supervisor_stop(struct supervisor *supervisor);

/* After `stopped`, with the loop run until it had no more handles. NULL is allowed. */
void supervisor_free(struct supervisor *supervisor);

uv_loop_t *supervisor_loop(const struct supervisor *supervisor);
const struct settings *supervisor_settings(const struct supervisor *supervisor);

#endif
