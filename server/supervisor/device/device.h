/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device: one GPU as the supervisor sees it: its worker, the worker's successors, and what the
 * driver says of the device.
 *
 * When a worker ends, its owner says which clients go on with the next one. The next worker is
 * started only when the old process is gone, since kernels of the old context might still write
 * until then. The start waits for a delay that grows while workers keep failing. Loop thread.
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
#include "server/supervisor/device/discovery.h"
#include "server/supervisor/device/held_requests.h"
#include "server/supervisor/device/heartbeat.h"
#include "server/supervisor/device/worker_link.h"
#include "server/supervisor/device/worker_process.h"

enum device_state {
    DEVICE_STARTING, /* the worker has not described the device yet */
    DEVICE_READY,    /* serves clients */
    DEVICE_WAITING,  /* the worker ended, and the next one is not started yet */
    DEVICE_STOPPED
};

/* Bytes of a sentence about a worker: as many as the message that ends a session carries. */
enum { DEVICE_TROUBLE = sizeof(((struct proto_failed *)0)->text) };

/* The state's name in lower case, as `status` shows it. The string is static. */
const char *device_state_name(enum device_state state);

/* A finding of a worker at its start: a value of the enumeration `warning`, and a sentence. */
struct device_warning {
    uint32_t which;
    char text[sizeof(((struct proto_worker_warning *)0)->text)];
};

enum { DEVICE_WARNINGS_MAX = 8 };

struct device;
struct settings;
struct job_pool;
struct tracing;

/*
 * A device's callbacks about its worker. The loop calls them. A device is never freed before the
 * supervisor, so it stays valid for its caller. A callback may end a session only by marking it.
 */
struct device_events {
    /* A worker serves, or answers again: clients may attach. */
    void (*ready)(void *context, struct device *device);
    /* The worker is gone, or has to go, with this error. Right after this call, the requests to it
     * are answered with WORKER_LOST, but for those of clients that `holds` names. */
    void (*lost)(void *context, struct device *device, uint32_t error, const char *text);
    /* Whether a client's requests wait for the next worker. */
    bool (*holds)(void *context, uint32_t client);
    /* The lost worker's process is gone, and nothing of it can use the device any more. */
    void (*gone)(void *context, struct device *device);
    /* Asked each second while the device serves one client at a time: whether that may end. */
    bool (*absolves)(void *context, struct device *device);
    /* A start failed before any worker of this device was ready; device->trouble says why. */
    void (*failed)(void *context, struct device *device);
    /* device_stop is complete. */
    void (*stopped)(void *context, struct device *device);
    /* The worker complains of one client, which must end with this error. */
    void (*client_violated)(void *context, struct device *device, uint32_t client, uint32_t error,
                            const char *text);
    /* A client that was detached has no memory on the device any more (worker_released). */
    void (*client_released)(void *context, struct device *device, uint32_t client);
    /* A stream or an event of a client has ended: worker_stream_ended or worker_event_ended. */
    void (*object_ended)(void *context, struct device *device,
                         const struct channel_message *message);
    void *context;
};

struct device {
    uv_loop_t *loop;
    struct job_pool *jobs;
    const struct settings *settings;
    struct device_events events;
    uint32_t index;
    struct discovery_device found;
    enum device_state state;
    struct proto_device_info info; /* as the latest worker that was ready described it */
    bool known;                    /* info is set */
    struct admission admission;
    struct quota accounts[RESOURCES]; /* of all its clients: resources that it has of its own */
    struct schedule schedule;         /* in force; without a worker: for the next one */
    struct schedule scheduled;        /* the schedule that the worker was asked for last */
    uint32_t scheduling;              /* answers about schedules that are still due */
    struct worker_process *process;   /* NULL: none, or the worker was adopted */
    struct worker_link *link;         /* NULL while there is none */
    struct held_requests held;        /* of clients that go on with the next worker */
    bool singly;                /* one client at a time is served, whatever the schedule says */
    uint32_t departed_suspects; /* clients that had left, of the latest worker's end (blame.h) */
    uint32_t loss;              /* error with which the latest worker was lost; 0: none was */
    struct tracing *tracing;    /* the trace under way, or NULL */
    uv_timer_t timer;           /* for the next start */
    uv_timer_t beat;            /* for the next look at the worker's threads */
    uv_timer_t absolve;         /* for the next question whether `singly` may end */
    unsigned timers;            /* that are open */
    bool closing;               /* the timers are being closed */
    struct heartbeat heartbeat;
    bool unanswering; /* the worker is silent: no client is passed on to it */
    bool failed_once; /* a worker has ended before any worker of the device was ready */
    bool silent;      /* the latest worker hung up without a word */
    bool served;      /* the latest worker had been ready */
    bool adopted;     /* the latest worker is no child of this process */
    bool stopping;
    uint32_t starts;
    uint32_t failures; /* in a row, without having been ready */
    uint64_t start_at; /* CLOCK_MONOTONIC: when the latest worker was started */
    uint64_t ready_at; /* CLOCK_MONOTONIC */
    uint64_t ended_at; /* CLOCK_MONOTONIC: when the latest worker was lost; 0: none was */
    char how[WORKER_PROCESS_END]; /* the latest worker's process ended; empty while it lives */
    char trouble[DEVICE_TROUBLE]; /* why there is no worker, or was none */
    struct device_warning warnings[DEVICE_WARNINGS_MAX]; /* of the latest worker's start */
    uint32_t warning_count;
};

/* Prepares a device and starts nothing. loop, jobs and settings are borrowed and must outlive the
 * device; *events is copied. */
void device_open(struct device *device, uv_loop_t *loop, struct job_pool *jobs,
                 const struct settings *settings, uint32_t index,
                 const struct discovery_device *found, const struct device_events *events);

/* Starts a worker. Returns 0, or -errno and device->trouble says why. */
int device_start(struct device *device);

/* Takes over a socket to a worker that is no child of this process; for tests. No other worker is
 * started after it: the next one is adopted too. Returns 0 or -errno. */
int device_adopt(struct device *device, int fd);

/* Ends the worker and starts none after it. events.stopped follows from the loop. Idempotent. */
void device_stop(struct device *device);

/*
 * worker_link_request to the present worker. Returns -EPIPE if there is none: events.lost has been
 * called, or will be called from the loop.
 */
int device_request(struct device *device, const struct channel_packet *request,
                   worker_link_reply *reply, void *context);

/* The same, for a request that goes on to the next worker where its client does. */
int device_request_again(struct device *device, const struct channel_packet *request,
                         worker_link_reply *reply, void *context);

/* Sends the present worker what was held for a client: its requests from before, and those that
 * were added to `held` since. */
void device_send_held(struct device *device, uint32_t client);

/* Ends a client's outstanding and held requests with WORKER_SESSION_ENDED. */
void device_cancel(struct device *device, uint32_t client);

/*
 * Kills the worker, which is lost with this error, and the next worker starts when the process is
 * gone. events.lost is called at once. Does nothing without a worker.
 */
void device_replace(struct device *device, const struct error *why);

/* From the next worker on, serves one client at a time, until events.absolves says that it may end;
 * it is asked for the first time a second after that worker is ready. Requests and limits of time
 * have no effect meanwhile. */
void device_serve_singly(struct device *device);

/* Without a worker: the next one serves as the schedule says. */
void device_serve_together(struct device *device);

/* Whether the worker takes clients now: it is ready and answers. */
bool device_serves(const struct device *device);

/* Gives the worker up: events.lost follows from the loop. Does nothing without a worker. */
void device_abandon(struct device *device);

/* Changes parts of the schedule; results and done as for change_schedule. The watchdog's parts are
 * in force at once, whatever the worker answers about the others. */
int device_schedule_set(struct device *device, const struct schedule *to, unsigned parts,
                        const char *by, change_done *done, void *context);

/* Whether the latest worker warned of this (of the enumeration `warning`). */
bool device_has_warning(const struct device *device, uint32_t which);

/* Explains in *why that the device can't serve clients now. Returns why->number. */
uint32_t device_refuse(const struct device *device, struct error *why);

#endif
