/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * watchdog: looks at a device's worker through its heartbeat, at the times that the schedule says.
 * It tells that the worker is silent, that it speaks again, and that it was silent, or has been
 * starting, for too long. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_WATCHDOG_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/error.h"
#include "common/units.h"
#include "server/supervisor/config/schedule.h"
#include "server/supervisor/worker/heartbeat.h"
#include "server/supervisor/worker/worker_process.h"

enum watchdog_phase {
    WATCHDOG_RESTS,    /* there is no worker, or none that was told to serve */
    WATCHDOG_STARTING, /* the worker starts, for seconds perhaps */
    WATCHDOG_SERVING
};

struct watchdog {
    /* Set by the owner before watchdog_open. The pointers outlive the watchdog. */
    uv_loop_t *loop;
    const struct schedule *schedule;
    struct worker_process *const *process; /* the worker's; NULL there: it is no child */
    uint32_t index;                        /* the device's */
    void (*ask)(void *context);            /* the control thread; watchdog_answered follows */
    void (*speaks)(void *context);         /* the worker is not silent any more */
    /* The worker has to go. The owner calls watchdog_rest. */
    void (*expired)(void *context, const struct error *why);
    void (*closed)(void *context); /* watchdog_close is complete */
    void *context;

    /* The watchdog's own; others read them. */
    enum watchdog_phase phase;
    struct heartbeat heartbeat; /* of the latest worker */
    bool silent;                /* for longer than the schedule's warning */
    uint64_t start_at;          /* CLOCK_MONOTONIC, of the phase STARTING */
    uv_timer_t timer;
};

/* Prepares a watchdog that rests. */
void watchdog_open(struct watchdog *watchdog);

/* Makes the heartbeat's page for a new worker. Returns 0 or -errno. */
int watchdog_make_page(struct watchdog *watchdog);
/* Takes over a heartbeat that a standby showed; a page that another supervisor left. */
void watchdog_take_heartbeat(struct watchdog *watchdog, const struct heartbeat *heartbeat);
void watchdog_adopt_page(struct watchdog *watchdog, int fd);

/* The worker starts, since that time (CLOCK_MONOTONIC); serves; is gone. The last is idempotent. */
void watchdog_starting(struct watchdog *watchdog, uint64_t start_at);
void watchdog_serving(struct watchdog *watchdog);
void watchdog_rest(struct watchdog *watchdog);

/* The control thread has answered. */
void watchdog_answered(struct watchdog *watchdog);

/* The schedule's times have changed. A look at once finds what they say about a worker that is
 * silent already. */
void watchdog_follow(struct watchdog *watchdog);

/* Writes for how long the worker has been silent, in whole tenths of a second. Returns text. */
const char *watchdog_silence(const struct watchdog *watchdog, char text[UNITS_TEXT]);
/* Says in which call the worker is silent. Returns text. */
const char *watchdog_explain(const struct watchdog *watchdog, char text[HEARTBEAT_TEXT]);

/* The page of the last worker is kept until `closed` is called from the loop. */
void watchdog_close(struct watchdog *watchdog);

#endif
