/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * standby: the process that becomes a device's next worker when the present one is lost.
 *
 * It is a gpushare-worker that has prepared itself as far as the schedule's part `standby` says,
 * and waits. It is a child of the supervisor with a barrier of its own (worker_process.h), so the
 * end of the present worker does not wait for it, and it has nothing of any client.
 *
 * One is started when the device has served for a while, so that it takes no time from clients that
 * are being given back what they had. One that ends or hangs is replaced after a delay that grows.
 * It never takes the device down: without one, the next worker begins with the driver's start.
 * Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_STANDBY_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_STANDBY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "protocol.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/config/schedule.h"
#include "server/supervisor/worker/heartbeat.h"
#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/worker/worker_process.h"

struct discovery_device;
struct settings;

enum standby_state {
    STANDBY_OFF,      /* the schedule wants none */
    STANDBY_WAITING,  /* there is none: the device does not serve, or a delay has not passed */
    STANDBY_STARTING, /* the process is not prepared yet */
    STANDBY_READY,
    STANDBY_ENDING /* the process was given up and is not gone yet */
};

/* The state's name in lower case, as `status` shows it. Static. */
const char *standby_state_name(enum standby_state state);

enum { STANDBY_TROUBLE = sizeof(((struct proto_failed *)0)->text) };
/* Bytes that are not known. */
#define STANDBY_UNKNOWN UINT64_MAX

struct standby {
    uv_loop_t *loop;
    const struct settings *settings;
    const struct discovery_device *found;
    const struct schedule *schedule;   /* in force on the device; the caller's */
    const struct shm *code;            /* memory of the device's workers for code; the caller's */
    uint32_t index;                    /* the device's, for the log */
    struct worker_link *const *worker; /* to the present worker, which says what memory is free */
    const struct quota *charged;       /* the device's memory that clients have */
    void (*closed)(void *context);     /* standby_close is complete */
    void *context;

    enum standby_state state;
    enum schedule_standby kind; /* of the process; without one, of the latest */
    bool serves;                /* the device does */
    bool closing;
    bool asked;                     /* it has not answered the latest question */
    bool hung_up;                   /* how it ends says why */
    bool measuring;                 /* it is started when the worker has said what is free */
    struct worker_process *process; /* NULL: there is none */
    struct worker_link *link;       /* NULL: it was given up, or there is none */
    struct heartbeat heartbeat;     /* its page, for when it is the worker */
    uv_timer_t timer;
    uint64_t ready_at; /* CLOCK_MONOTONIC; 0: it is not ready */
    uint32_t failures; /* in a row */
    uint32_t takeovers;
    uint64_t free_before;         /* device memory, clients' charges included; or STANDBY_UNKNOWN */
    uint64_t device_bytes;        /* that it takes; or STANDBY_UNKNOWN */
    char how[WORKER_PROCESS_END]; /* the process ended; empty while it lives */
    char trouble[STANDBY_TROUBLE]; /* why the latest one failed; empty: none has */
};

/* The parts that a standby gives to the device when it becomes the worker. */
struct standby_worker {
    struct worker_process *process;
    struct worker_link *link;
    struct heartbeat heartbeat;
};

/* Prepares a standby and starts nothing. The caller has set the members up to `context`; what they
 * point to must outlive the standby. */
void standby_open(struct standby *standby);

/* The device serves from now on, or does no more. */
void standby_device_serves(struct standby *standby, bool serves);

/* The schedule has changed: another kind of standby may be wanted. */
void standby_follow(struct standby *standby);

/* Gives a standby that is ready to the caller, who tells it to serve. Returns false if there is
 * none: one that is being started is ended then. */
bool standby_take(struct standby *standby, struct standby_worker *worker);

/* A standby that was taken did not answer. */
void standby_failed_as_worker(struct standby *standby, const char *why);

/* Host memory that the process has now, bytes; STANDBY_UNKNOWN without one. */
uint64_t standby_resident(const struct standby *standby);

/* Ends the standby and starts none after it; `closed` follows from the loop. */
void standby_close(struct standby *standby);

#endif
