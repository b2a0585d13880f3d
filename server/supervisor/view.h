/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * view: the server as administrators see it. Views are filled by value and stay true
 * until control returns to the loop. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_VIEW_H
#define GPUSHARE_SERVER_SUPERVISOR_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/limits/allowance.h"
#include "protocol.h"
#include "server/supervisor/device/device.h"
#include "server/supervisor/config/schedule.h"

struct supervisor;

struct device_view {
    uint32_t index;   /* as clients name it */
    uint32_t ordinal; /* as the driver names it */
    enum device_state state;
    struct proto_device_info info; /* all zero until the first worker was ready */
    pid_t worker_pid;              /* 0 while there is none */
    uint32_t worker_starts;        /* how many were started so far */
    uint32_t clients;              /* attached now, those being taken down included */
    uint32_t partitions;           /* distinct sets of multiprocessors that its clients hold */
    uint64_t memory_charged;       /* bytes, all clients together */
    struct schedule schedule;      /* in force, or to be with the next worker */
    char trouble[380];             /* why the latest worker ended; empty if none has */
};

struct client_view {
    uint32_t number;
    char name[64]; /* as the client calls itself; control characters replaced */
    pid_t pid;     /* as the kernel says; 0 if it is not visible from here */
    uid_t uid;
    const char *state; /* "hello", "greeted", "attaching", "attached", "leaving"; static */
    bool attached;     /* the fields below hold something only then */
    uint32_t device;
    struct allowance asked;   /* by the client itself */
    struct allowance granted; /* threads before rounding to partitions */
    uint64_t memory_charged;
    uint64_t host_charged;
    uint32_t multiprocessors; /* that it may have at most */
    bool partitioned;         /* enforced by a partition */
    uint32_t fds;             /* descriptors that the server holds for it */
    uint32_t waiting;         /* requests that the worker has not answered */
    uint64_t connected_ns;    /* for how long */
};

struct server_view {
    uint32_t clients; /* connections, of every state */
    uint32_t clients_max;
    uint64_t clients_served; /* attached since the start */
    uint64_t clients_refused;
    uint64_t host_limit; /* pinned host memory of all clients together */
    uint64_t host_charged;
    uint32_t fds; /* descriptors held for clients */
    uint32_t fds_limit;
    uint32_t images; /* module images cached */
    uint64_t image_bytes;
    uint64_t uptime_ns;
};

uint32_t view_device_count(const struct supervisor *supervisor);
/* index < view_device_count */
void view_device(const struct supervisor *supervisor, uint32_t index, struct device_view *view);

/* Calls visit for every client in the order of their numbers, until it returns false. */
void view_each_client(const struct supervisor *supervisor,
                      bool (*visit)(void *context, const struct client_view *view), void *context);

void view_server(const struct supervisor *supervisor, struct server_view *totals);

struct config_view {
    const char *file; /* NULL: none is in force; true until the next reload */
    size_t profiles, rules;
};

void view_config(const struct supervisor *supervisor, struct config_view *view);

/*
 * Asks the worker what a client has used. done is called exactly once, from the
 * loop and never before this returns; usage is NULL if the client or the worker went
 * away meanwhile. Returns 0, -ENOENT (no such client, or not attached: done is
 * not called), or another -errno (done is not called).
 */
int view_usage(struct supervisor *supervisor, uint32_t client,
               void (*done)(void *context, uint32_t client, const struct proto_worker_usage *usage),
               void *context);

#endif
