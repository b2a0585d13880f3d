/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * supervisor: the whole server except its main(): the devices with their workers, the clients with
 * what they own, and the limits between them. It never calls CUDA.
 *
 * This header is about the supervisor's life. The rest of the process asks through clients, view,
 * change, owner_total, trace and reload. Everything runs on the thread of one libuv loop.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_H
#define GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_H

#include <stddef.h>

#include <uv.h>

#include "common/error.h"

struct saved;
struct settings;
struct discovery;
struct supervisor;

/* The supervisor's callbacks to its owner. The loop calls them, but supervisor_stop may call
 * `stopped` itself. The callee may stop the supervisor. It frees the supervisor only after
 * `stopped`, when the loop has ended. */
struct supervisor_events {
    /* The first device of all serves clients. Called once. */
    void (*ready)(void *context);
    /* A sentence about the present state, for systemd's STATUS=. Called often; may be NULL. */
    void (*status)(void *context, const char *text);
    /* No device could be started; text says what is wrong with the driver. The callee stops. */
    void (*unusable)(void *context, const char *text);
    /* All that has changed is kept (survive.h). Called often; may be NULL. */
    void (*kept)(void *context);
    /* supervisor_stop is complete: no client, no worker, no open handle is left. */
    void (*stopped)(void *context);
    void *context;
};

/*
 * Makes the supervisor. settings are borrowed and must outlive it; *events is copied. Nothing is
 * started yet. Returns 0, or -errno with *out NULL.
 */
int supervisor_create(struct supervisor **out, uv_loop_t *loop, const struct settings *settings,
                      const struct supervisor_events *events);

/*
 * Starts a worker for each device. The caller may listen for clients before. Returns 0, or an error
 * number that *why explains; then supervisor_stop must follow.
 */
uint32_t supervisor_start(struct supervisor *supervisor, const struct discovery *discovery,
                          struct error *why);

/* Like supervisor_start, but from what another server left (survive.h). */
struct state_log_reader;
uint32_t supervisor_take_over(struct supervisor *supervisor, const struct discovery *discovery,
                              const struct state_log_reader *reader, struct error *why);

/* Ends every client (connection_lost) and every worker, then calls `stopped`. Idempotent. */
void supervisor_stop(struct supervisor *supervisor);

/* Frees the supervisor after `stopped`, once the loop has run until it had no more handles. NULL is
 * allowed. */
void supervisor_free(struct supervisor *supervisor);

/* Keeps all for another server from now on; before supervisor_start. keeper is borrowed. */
struct keeper;
void supervisor_keep(struct supervisor *supervisor, struct keeper *keeper);

/* Keeps what this server was started with, for one that takes over; after supervisor_keep. argv: as
 * for accepted_keep_start, for the supervisor's life. */
void supervisor_keep_start(struct supervisor *supervisor, char *const *argv);

uv_loop_t *supervisor_loop(const struct supervisor *supervisor);
const struct settings *supervisor_settings(const struct supervisor *supervisor);
struct saved *supervisor_saved(const struct supervisor *supervisor);

#endif
