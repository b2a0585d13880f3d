/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * submitter: the one thread that hands work to the device.
 *
 * It visits the clients of its scan set: those that rang their doorbell a short while ago. The
 * other clients are asleep and cost nothing: their doorbell writes an eventfd of the submitter's
 * epoll set, edge-triggered and never read. It serves clients by deficit round robin, as far as the
 * gate lets them, and the rings of one client batch by batch. It leaves a held client alone until
 * the gate makes the client runnable.
 *
 * When idle it spins a short while if there is a processor to spare, then sleeps. It never polls a
 * sleeping client.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_SUBMITTER_H
#define GPUSHARE_SERVER_WORKER_RUN_SUBMITTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/thread.h"
#include "server/worker/client/client.h"
#include "server/worker/run/command.h"

struct worker;

enum {
    SUBMITTER_VISIT_MAX = 64, /* maximum of commands that a client may submit in a visit */
    /* Rings of a client that are served in a visit while others are scanned: each costs two calls
     * of the driver at least, so a client with hundreds would keep the others, and threads that
     * want its lock, waiting for milliseconds. */
    SUBMITTER_VISIT_RINGS = 8,
    SUBMITTER_BATCH = 32 /* maximum of commands between two completions of a ring */
};

struct submitter {
    struct worker *worker;
    struct thread thread;
    int epoll;
    _Atomic uint32_t stop;
    uint64_t spin_ns;
    uint64_t now;       /* when it last read the clock, ns */
    uint32_t unclocked; /* commands submitted since then */
    uint32_t visits;
    uint32_t rounds;
    struct client **scanned; /* the scan set */
    uint32_t scanned_count, scanned_room;
    struct command command;
};

/* Starts the thread. Returns 0, or an error number with a sentence in why. Control thread. */
uint32_t submitter_start(struct submitter *submitter, struct worker *worker, struct error *why);
/* Ends the thread, waits for it and frees what it has. Idempotent. Control thread. */
void submitter_stop(struct submitter *submitter);

/* From now on the submitter hears the client's doorbell; the client becomes ASLEEP. Returns 0 or
 * -errno. Control thread, without the client's lock. */
int submitter_add(struct submitter *submitter, struct client *client);

/* The client becomes LEAVING. It is LEFT when the submitter has dropped it; the submitter then
 * wakes the control thread. Control thread, without the client's lock. */
void submitter_drop(struct submitter *submitter, struct client *client);

/* ---- submitter_visit.c; the submitter's own thread ---- */

/* Visits a client, and serves it if its rings are read at all. Takes its lock. The client is IDLE,
 * READY, FULL, HELD or VIOLATED afterwards. Returns whether the scan has to go on at once: a
 * command was taken, or the client is READY or HELD afterwards. The thread may sleep only if no
 * visit of a round returned true. */
bool submitter_visit(struct submitter *submitter, struct client *client);

/* Rings whose wait for other rings is over become ready again; to be called when something may have
 * changed for the client. Returns whether any ring is ready. Under the client's lock. */
bool submitter_find_ready(struct submitter *submitter, struct client *client);

#endif
