/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device: one GPU as the supervisor sees it: a worker, its successors, and what
 * the driver says of the device.
 *
 * A worker that ends takes its clients with it; a fresh one is started when the
 * old process is gone (its context's kernels might still write until then), after
 * a delay that grows while it keeps failing.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/error.h"
#include "protocol.h"
#include "server/supervisor/account/admission.h"
#include "server/supervisor/account/change_done.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/config/schedule.h"
#include "server/supervisor/device/worker_link.h"
#include "server/supervisor/device/worker_process.h"

enum device_state {
    DEVICE_STARTING, /* the worker has not reported yet */
    DEVICE_READY,    /* serves clients */
    DEVICE_WAITING,  /* the worker ended; the next start waits */
    DEVICE_STOPPED
};

/* "starting", "ready", "waiting", "stopped". Static. */
const char *device_state_name(enum device_state state);

struct device;
struct settings;
struct tracing;

/*
 * A device's callbacks about its worker. Each is called from the loop; a device is never
 * freed before the supervisor is, so its caller does not vanish, and none of these may
 * end a session otherwise than by marking it.
 */
struct device_events {
    /* A worker serves: clients may attach. */
    void (*ready)(void *context, struct device *device);
    /* The worker is gone, or goes: its clients end with this error. The requests that they have
     * sent to it is answered with WORKER_LOST right after. */
    void (*lost)(void *context, struct device *device, uint32_t error, const char *text);
    /* A start failed before any worker of this device was ready; device->trouble says why. */
    void (*failed)(void *context, struct device *device);
    /* device_stop is complete. */
    void (*stopped)(void *context, struct device *device);
    /* The worker complains of one client, which is to end with this error. */
    void (*complained)(void *context, struct device *device, uint32_t client, uint32_t error,
                       const char *text);
    /* A stream or an event of a client has ended: worker_stream_ended or worker_event_ended. */
    void (*object_ended)(void *context, struct device *device,
                         const struct channel_message *message);
    void *context;
};

struct device {
    uv_loop_t *loop;
    const struct settings *settings;
    struct device_events events;
    uint32_t index, ordinal;
    enum device_state state;
    struct proto_device_info info;
    bool known; /* info holds something */
    struct admission admission;
    struct quota memory;            /* of all its clients together */
    struct schedule schedule;       /* in force; without a worker: what the next one is told */
    struct schedule scheduled;      /* asked of the worker last... */
    uint32_t scheduling;            /* ...while so many answers are due */
    struct worker_process *process; /* NULL: none, or adopted */
    struct worker_link *link;       /* NULL while there is none */
    struct tracing *tracing;        /* a trace under way, or NULL */
    uv_timer_t timer;               /* the next start */
    bool timer_open;
    bool failed_once; /* no worker of it has ever been ready, and one has ended */
    bool silent;      /* the latest worker hung up without a word */
    bool served;      /* and had been ready */
    bool stopping;
    uint32_t starts;
    uint32_t failures;            /* in a row, without having been ready */
    uint64_t ready_at;            /* CLOCK_MONOTONIC */
    char how[WORKER_PROCESS_END]; /* the latest worker's process ended; empty while it lives */
    char trouble[380];            /* why there is no worker, or was none */
};

/* Nothing is started. settings are borrowed and must outlive it. */
void device_open(struct device *device, uv_loop_t *loop, const struct settings *settings,
                 uint32_t index, uint32_t ordinal, const struct device_events *events);

/* Starts a worker. Returns 0 or -errno. */
int device_start(struct device *device);

/* Takes over a socket to a worker that is no child of this process (tests). 0 or -errno. */
int device_adopt(struct device *device, int fd);

/* Ends the worker; events.stopped follows from the loop. */
void device_stop(struct device *device);

/*
 * worker_link_request to the present worker. -EPIPE if there is none: then the loss of
 * the worker has been told, or follows from the loop.
 */
int device_request(struct device *device, const struct worker_request *request,
                   worker_link_reply *reply, void *context);

/* Ends a client's outstanding requests with WORKER_SESSION_ENDED. */
void device_cancel(struct device *device, uint32_t client);

/* The worker is of no more use to the caller: its loss follows from the loop. */
void device_abandon(struct device *device);

/* See change_schedule. */
int device_schedule_set(struct device *device, const struct schedule *to, unsigned parts,
                        const char *by, change_done *done, void *context);

/* Explains in *why that clients can't be served now; returns device_not_ready. */
uint32_t device_refuse(const struct device *device, struct error *why);

#endif
