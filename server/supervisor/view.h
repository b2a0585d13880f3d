/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * view: the server as administrators see it. Views are filled by value; strings in them are valid
 * until control returns to the loop. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_VIEW_H
#define GPUSHARE_SERVER_SUPERVISOR_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "common/limits/limits.h"
#include "protocol.h"
#include "server/supervisor/account/history.h"
#include "server/supervisor/device/device.h"
#include "server/supervisor/config/schedule.h"

struct config;
struct supervisor;
struct total_overrides;

struct standby_view {
    enum schedule_standby kind; /* of the process, or of the next one */
    enum standby_state state;
    pid_t pid;             /* 0 while there is none */
    uint64_t device_bytes; /* that it takes; STANDBY_UNKNOWN: not known, or not ready */
    uint64_t resident;     /* host memory, bytes; STANDBY_UNKNOWN without a process */
    uint32_t takeovers, failures;
    char trouble[STANDBY_TROUBLE]; /* why the latest one failed; empty: none has */
};

struct device_view {
    uint32_t index;   /* as clients number it */
    uint32_t ordinal; /* as the driver numbers it */
    enum device_state state;
    struct proto_device_info info; /* all zero until the first worker was ready */
    pid_t worker_pid;              /* 0 while there is none */
    bool drained;                  /* an administrator lets no new clients attach */
    bool singly;                   /* it serves one client at a time, after a fault */
    uint64_t singly_ns;            /* for which it has done so since the server's start */
    uint32_t worker_starts;        /* number of workers started so far */
    uint32_t clients;              /* being attached, attached, or being taken down */
    uint32_t partitions;           /* distinct sets of multiprocessors that its clients have */
    uint64_t memory_charged;       /* bytes, all clients together */
    struct schedule schedule;      /* in force; without a worker: for the next one */
    struct schedule configured;    /* as the configuration in force says */
    char trouble[DEVICE_TROUBLE];  /* why the latest worker ended; empty if none has */
    bool ended;                    /* a worker has ended */
    uint64_t ended_ns;             /* time since the latest one did */
    uint64_t silent_ns;            /* the worker does not answer; 0: it does */
    char silence[HEARTBEAT_TEXT];  /* which thread does not, and where; empty if it answers */
    struct heartbeat_call calls[ACTIVITY_THREADS]; /* of the driver that last */
    unsigned call_count;
    uint32_t compilations[ACTIVITY_COUNTS];              /* of the present worker */
    struct device_warning warnings[DEVICE_WARNINGS_MAX]; /* of the latest worker's start */
    uint32_t warning_count;
    struct standby_view standby;
    /* The limits of a client that attaches now, asks for nothing and matches no rule; those that an
     * administrator has set have that source. All zero until the first worker was ready. */
    struct allowance newcomer;
    unsigned newcomer_requests; /* RESOURCE_BITs of those whose request somebody has set */
};

struct client_view {
    uint32_t number;
    char name[64]; /* the name that the client gave itself; control characters replaced */
    pid_t pid;     /* as the kernel says; 0 if it is not visible from here */
    uid_t uid;
    const char *state; /* "hello", "greeted", "attaching", "attached", "leaving"; static */
    const char *blame; /* "none", "suspect", "isolated"; static */
    bool attached;     /* the members below are set only then */
    uint32_t device;
    struct allowance asked;         /* by the client itself */
    struct allowance granted;       /* in force: see session_limits_in_force; threads before
                                       rounding to partitions */
    struct allowance own;           /* the same without totals and accounts, for changes of it */
    uint64_t charged[RESOURCES];    /* to its quotas */
    uint32_t multiprocessors;       /* maximum that it may have */
    bool partitioned;               /* a partition enforces that, not a duty cycle */
    uint32_t fds;                   /* descriptors that the server holds for it */
    uint32_t waiting;               /* its requests that the worker has not answered */
    uint64_t singly_ns;             /* for which it was served so since it attached */
    uint64_t connected_ns;          /* time since it connected */
    const struct history_use *used; /* as its worker said last; valid for the visit */
};

struct server_view {
    uint32_t clients; /* connections in any state */
    uint32_t clients_max;
    uint64_t clients_served; /* attached since the start */
    uint64_t clients_refused;
    uint64_t host_limit; /* pinned host memory of all clients together, bytes */
    uint64_t host_charged;
    uint32_t fds; /* descriptors that the server holds for clients */
    uint32_t fds_limit;
    uint32_t images; /* number of cached module images */
    uint64_t image_bytes;
    uint64_t uptime_ns;         /* since the first server that clients have gone on from */
    uint64_t process_uptime_ns; /* since this one started */
};

uint32_t view_device_count(const struct supervisor *supervisor);
/* Fills *view with a device; index < view_device_count. */
void view_device(const struct supervisor *supervisor, uint32_t index, struct device_view *view);

/* Writes a device's UUID as nvidia-smi shows it. Returns text. */
const char *view_device_uuid(const struct supervisor *supervisor, uint32_t index,
                             char text[LIMITS_UUID_TEXT]);

/* Calls visit for every client, in the order in which they connected, until it returns false. */
void view_each_client(const struct supervisor *supervisor,
                      bool (*visit)(void *context, const struct client_view *view), void *context);

/* The use and the faults since the server's start, with clients that are there counted
 * anew. Valid until control returns to the loop. */
const struct history *view_history(struct supervisor *supervisor);

/* Fills *view. */
void view_server(const struct supervisor *supervisor, struct server_view *view);

/* States about which administrators should do something, while they last. */
enum server_warning {
    WARNING_CONFIGURATION_REFUSED,
    WARNING_OPTIONS_REFUSED,
    WARNING_CONFIGURATION_NOT_COPIED,
    WARNING_ACCOUNTING_NOT_WRITTEN,
    WARNING_SAVED_NOT_KEPT,
    SERVER_WARNINGS
};

/* As in the answer to status. Static. */
const char *view_warning_name(enum server_warning warning);

/* Whether this is so; then *what, which may be NULL, gets a sentence: the cause and the remedy. */
bool view_warning(const struct supervisor *supervisor, enum server_warning warning,
                  struct error *what);

struct config_view {
    const char *file; /* NULL: none is in force; valid until the next reload */
    size_t profiles, rules, gpus, users, groups, cgroups; /* how many it has */
    /* How many its reload changed: attached clients, whose own limits or whose accounts and totals
     * became others, and settings of GPUs. */
    uint32_t changed_clients, changed_settings;
};

/* Fills *view with the configuration in force. */
void view_config(const struct supervisor *supervisor, struct config_view *view);

/* The file in force, or NULL; and the totals that administrators have set. Valid until control
 * returns to the loop. */
const struct config *view_configuration(const struct supervisor *supervisor);
const struct total_overrides *view_overrides(const struct supervisor *supervisor);

/*
 * Asks the worker what a client has used. Returns 0: done is then called exactly once, from the
 * loop and never before this function returns; its usage is NULL if the client or the worker went
 * away meanwhile. Returns -ENOENT (no such client, or the worker does not know it: it is neither
 * attached nor leaves) or another -errno: done is not called then.
 */
int view_usage(struct supervisor *supervisor, uint32_t client,
               void (*done)(void *context, uint32_t client, const struct proto_worker_usage *usage),
               void *context);

#endif
