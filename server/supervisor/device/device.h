/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device: one GPU as the supervisor sees it: its worker, the worker's successors, and what the
 * driver says of the device.
 *
 * When a worker ends, its owner says which clients go on with the next one. The next worker is
 * started, or a standby takes over (standby.h), only when the old process is gone, since kernels of
 * the old context might still write until then. A start waits for a delay that grows while workers
 * keep failing. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/error.h"
#include "protocol.h"
#include "server/supervisor/account/admission.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/config/schedule.h"
#include "server/supervisor/device/ailment.h"
#include "server/supervisor/worker/discovery.h"
#include "server/supervisor/worker/held_requests.h"
#include "server/supervisor/keep/keeper.h"
#include "server/supervisor/worker/standby.h"
#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/worker/watchdog.h"
#include "server/supervisor/worker/worker_process.h"

enum device_state {
    DEVICE_STARTING, /* the worker has not described the device yet */
    DEVICE_READY,    /* serves clients */
    DEVICE_WAITING,  /* the worker ended, and the next one is not started yet */
    DEVICE_HELD,     /* the worker ended, and a process that it began still has the device */
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
    /* The time of device_pace has passed, and the device still serves. */
    void (*paced)(void *context, struct device *device);
    /* The lost worker's process is gone, and nothing of it can use the device any more. */
    void (*gone)(void *context, struct device *device);
    /* Asked each second while the device serves one client at a time: whether that may end. */
    bool (*absolves)(void *context, struct device *device);
    /* The client's interrupted kernels have run alone since (worker_proven). */
    void (*client_proven)(void *context, struct device *device, uint32_t client);
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

/* A worker that another supervisor left; -1: a descriptor that it did not have. */
struct device_left {
    pid_t pid;
    bool served;
    int link, process, barrier, page, ledger, code; /* page: of the heartbeat */
};

/* Records that are kept for another supervisor (device_record.h). */
struct device_keeping {
    struct kept record;
    uint32_t start; /* device->starts of the worker whose descriptors have these numbers */
    uint32_t link, process, barrier, page, ledger, code;
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
    struct proto_kernel_heap heap; /* as that worker said */
    bool known;                    /* info is set */
    struct admission admission;
    struct allowance newcomers; /* limits of clients to come, as an administrator has set them */
    struct quota quotas[RESOURCES]; /* of all its clients: resources that it has of its own */
    struct schedule schedule;       /* in force; without a worker: for the next one */
    struct schedule configured;     /* as the file said that `schedule` was made by */
    struct schedule scheduled;      /* the schedule that the worker was asked for last */
    uint32_t scheduling;            /* answers about schedules that are still due */
    struct worker_process *process; /* NULL: none, or the worker was adopted */
    struct worker_link *link;       /* NULL while there is none */
    struct device_keeping keeping;
    struct send_hold *hold;     /* of what is sent to workers; NULL: nothing is held */
    uint64_t base;              /* serials of requests to workers are greater */
    struct held_requests held;  /* of clients that go on with the next worker */
    bool drained;               /* an administrator lets no new clients attach */
    bool singly;                /* one client at a time is served, whatever the schedule says */
    uint32_t suspects;          /* of the latest fault, those that had left included (blame.h) */
    uint64_t singly_since;      /* CLOCK_MONOTONIC: when `singly` began */
    uint64_t singly_ns;         /* for which it lasted before */
    uint32_t departed_suspects; /* clients that had left, of the latest worker's end (blame.h) */
    uint32_t loss;              /* error with which the latest worker was lost; 0: none was */
    struct tracing *tracing;    /* the trace under way, or NULL */
    uv_timer_t timer;           /* for the next start, and a standby that starts to serve */
    uv_timer_t pace;            /* for the next of the clients that are told to the worker */
    uv_timer_t absolve;         /* for the next question whether `singly` may end */
    struct shm code;            /* compiled code, which outlives each worker; fd -1: none yet */
    struct standby standby;     /* what becomes the next worker */
    unsigned open_parts;        /* timers, the watchdog, the standby */
    bool closing;               /* the timers are being closed */
    struct watchdog watchdog;
    struct ailment ailment; /* errors of the machine */
    struct shm ledger;      /* of worker_ledger: what its workers leave to the next one */
    bool failed_once;       /* a worker has ended before any worker of the device was ready */
    bool crashed;           /* the latest worker's process ended by a signal of its own making */
    bool silent;            /* the latest worker hung up without a word */
    bool served;            /* the latest worker had been ready */
    bool adopted;           /* the latest worker is no child of this process */
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

/* Loop, jobs and settings are borrowed and must outlive the device; the rest is copied. */
struct device_options {
    uv_loop_t *loop;
    struct job_pool *jobs;
    const struct settings *settings;
    uint32_t index;
    const struct discovery_device *found;
    const struct device_events *events;
};

/* Prepares a device and starts nothing. */
void device_open(struct device *device, const struct device_options *options);

/* Starts a worker, or lets the standby take over. Returns 0, or -errno and device->trouble says
 * why. */
int device_start(struct device *device);

/* Starts one that the last server had not: at once, or when the device is kept down no more. */
void device_start_again(struct device *device);

/* Takes over a socket to a worker that is no child of this process; for tests. No other worker is
 * started after it: the next one is adopted too. Returns 0 or -errno. */
int device_adopt(struct device *device, int fd);

/* Takes over a worker that another supervisor left, and its descriptors, on failure too. One that
 * did not serve is ended, and the next one starts then. Returns 0 or -errno. */
int device_take_over(struct device *device, const struct device_left *left);

/* Shows a worker that there is a supervisor. */
void device_show(struct device *device);

/* Ends the worker and starts none after it. events.stopped follows from the loop. Idempotent. */
void device_stop(struct device *device);

/*
 * Kills the worker, which is lost with this error, and the next worker starts when the process is
 * gone. events.lost is called at once. Does nothing without a worker.
 */
void device_replace(struct device *device, const struct error *why);

/* Asks for events.paced after this time, or the shorter one that was asked for before. */
void device_pace(struct device *device, uint64_t milliseconds);

/* Whether the worker takes clients now: it is ready and answers. */
bool device_serves(const struct device *device);

/* Whether the latest worker warned of this (of the enumeration `warning`). */
bool device_has_warning(const struct device *device, uint32_t which);

/* Explains in *why that the device can't serve clients now. Returns why->number. */
uint32_t device_refuse(const struct device *device, struct error *why);

/* Gives the worker up: events.lost follows from the loop. Does nothing without a worker. */
void device_abandon(struct device *device);

#endif
