/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * submitter: the one thread that hands work to the device.
 *
 * It looks at the clients that are active: those that rang a short while ago.
 * The others are asleep and leave it alone: their doorbell writes an eventfd of its
 * epoll set, edge-triggered and never read. Clients are served by deficit round
 * robin, as far as the gate lets them; a client's rings take turns. A held client is
 * left alone until the gate makes it runnable. Idle, it spins a short while if there is a processor
 * to spare, then sleeps; it never polls a sleeping client.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_SUBMITTER_H
#define GPUSHARE_SERVER_WORKER_RUN_SUBMITTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "server/worker/client/client.h"
#include "server/worker/run/command.h"

struct worker;

enum {
    SUBMITTER_QUANTUM = 64, /* commands a client may submit a round */
    SUBMITTER_BATCH = 32    /* commands between two completions of a ring, at most */
};

struct submitter {
    struct worker *worker;
    pthread_t thread;
    bool running;
    int epoll;
    _Atomic uint32_t stop;
    uint64_t spin_ns;
    uint64_t now;       /* a time not long ago */
    uint32_t unclocked; /* commands submitted since */
    uint32_t visits;
    uint32_t rounds;
    struct client **scanned; /* the scan set */
    uint32_t scanned_count, scanned_room;
    struct command command;
};

/* 0 or an error number with a sentence. */
uint32_t submitter_start(struct submitter *submitter, struct worker *worker, struct error *why);
/* Ends the thread. */
void submitter_stop(struct submitter *submitter);

/* Control thread: from now on the client's doorbell is heard; it is ASLEEP. 0 or -errno. */
int submitter_add(struct submitter *submitter, struct client *client);

/* Control thread: the client is LEAVING; LEFT when the submitter has dropped it. */
void submitter_drop(struct submitter *submitter, struct client *client);

/* ---- submitter_visit.c; the submitter's own thread ---- */

/* Serves a client for one turn, if it is served at all; takes its lock. Afterwards it is IDLE,
 * READY, FULL or HELD, or VIOLATED. Returns whether anything moved. */
bool submitter_visit(struct submitter *submitter, struct client *client);

/* Something may have changed for the client: rings whose wait for others is over are ready again.
 * Returns whether any ring is ready. Under its lock. */
bool submitter_find_ready(struct submitter *submitter, struct client *client);

#endif
