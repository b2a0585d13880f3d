/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * supervisor: the whole server but its main(): devices with their workers, clients
 * with what they own, and the limits between them. It never calls CUDA.
 *
 * This header is what the rest of the process (main, admin, notify) sees of it.
 * Everything runs on the thread of one libuv loop; views are filled by value and
 * stay true until control returns to the loop.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_H
#define GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "protocol.h"
#include "server/supervisor/schedule.h"

struct settings;
struct discovery;
struct supervisor;

/* ---- life ---- */

/* What main wants to hear. Each is called from the loop. */
struct supervisor_events {
    /* The first device of all serves clients. Once. */
    void (*ready)(void *context);
    /* A sentence about the present state, for systemd's STATUS=. Often. */
    void (*status)(void *context, const char *text);
    /* No device could be started; text says what is wrong with the driver. The caller stops. */
    void (*unusable)(void *context, const char *text);
    /* supervisor_stop is complete: no client, no worker, no open handle is left. */
    void (*stopped)(void *context);
    void *context;
};

/*
 * Makes the supervisor; settings are borrowed and must outlive it. Nothing is
 * started yet. Returns 0 or -errno.
 */
int supervisor_create(struct supervisor **out, uv_loop_t *loop, const struct settings *settings,
                      const struct supervisor_events *events);

/*
 * Starts a worker for each device. Clients may be listened for before. Returns 0, or
 * -errno with a sentence in text; supervisor_stop is due then.
 */
int supervisor_start(struct supervisor *supervisor, const struct discovery *discovery, char *text,
                     size_t text_bytes);

/*
 * Takes over a connected client socket (SOCK_SEQPACKET); closes it if it can't be
 * served, after telling the client why. Identity is the kernel's (SO_PEERCRED).
 */
void supervisor_accept(struct supervisor *supervisor, int fd);

/* Ends every client (connection_lost) and every worker, then reports `stopped`. Idempotent. */
void supervisor_stop(struct supervisor *supervisor);

/* After `stopped`, with the loop run until it had no more handles. NULL is allowed. */
void supervisor_free(struct supervisor *supervisor);

/* ---- for the admin socket ---- */

enum supervisor_device_state {
    SUPERVISOR_DEVICE_STARTING, /* the worker has not reported yet */
    SUPERVISOR_DEVICE_READY,    /* serves clients */
    SUPERVISOR_DEVICE_WAITING,  /* the worker ended; the next start waits */
    SUPERVISOR_DEVICE_STOPPED
};

/* "starting", "ready", "waiting", "stopped". Static. */
const char *supervisor_device_state_name(enum supervisor_device_state state);

struct supervisor_device_view {
    uint32_t index;   /* as clients name it */
    uint32_t ordinal; /* as the driver names it */
    enum supervisor_device_state state;
    struct proto_device_info info; /* all zero until the first worker was ready */
    pid_t worker_pid;              /* 0 while there is none */
    uint32_t worker_starts;        /* how many were started so far */
    uint32_t clients;              /* attached now, those being taken down included */
    uint32_t partitions;           /* distinct sets of multiprocessors that its clients hold */
    uint64_t memory_charged;       /* bytes, all clients together */
    struct schedule schedule;      /* in force, or to be with the next worker */
    char trouble[380];             /* why the latest worker ended; empty if none has */
};

struct supervisor_client_view {
    uint32_t number;
    char name[64]; /* as the client calls itself; control characters replaced */
    pid_t pid;     /* as the kernel says; 0 if it is not visible from here */
    uid_t uid;
    const char *state; /* "hello", "greeted", "attaching", "attached", "leaving"; static */
    bool attached;     /* the fields below hold something only then */
    uint32_t device;
    uint64_t memory_asked; /* PROTO_UNSET: not asked */
    uint64_t memory_limit;
    uint64_t memory_request_asked; /* 0: not asked */
    uint64_t memory_request;       /* guaranteed */
    uint64_t memory_charged;
    uint64_t host_asked; /* PROTO_UNSET: not asked */
    uint64_t host_limit;
    uint64_t host_request_asked; /* 0: not asked */
    uint64_t host_request;       /* guaranteed */
    uint64_t host_charged;
    /* Shares are hundredths of a per cent; a limit of 0 was not asked, a request of 0 neither. */
    uint32_t threads_asked;
    uint32_t threads_granted; /* before rounding to partitions */
    uint32_t thread_request_asked;
    uint32_t thread_request;
    uint32_t time_request_asked;
    uint32_t time_request;
    uint32_t time_limit_asked;
    uint32_t time_limit;
    uint32_t multiprocessors; /* that it may have at most */
    bool partitioned;         /* enforced by a partition */
    uint32_t priority;
    uint32_t fds;          /* descriptors that the server holds for it */
    uint32_t waiting;      /* requests that the worker has not answered */
    uint64_t connected_ns; /* for how long */
};

struct supervisor_totals {
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

uint32_t supervisor_device_count(const struct supervisor *supervisor);
/* index < supervisor_device_count */
void supervisor_device_view(const struct supervisor *supervisor, uint32_t index,
                            struct supervisor_device_view *view);

/* Calls visit for every client in the order of their numbers, until it returns false. */
void supervisor_each_client(const struct supervisor *supervisor,
                            bool (*visit)(void *context, const struct supervisor_client_view *view),
                            void *context);

void supervisor_totals(const struct supervisor *supervisor, struct supervisor_totals *totals);

/* Ends a client with PROTO_ERROR_KILLED. by names who asked, for the log. 0, or -ENOENT. */
int supervisor_kill(struct supervisor *supervisor, uint32_t client, const char *by);

/* What an administrator changes of a client's grant; it replaces what the client asked for. Shares
 * are hundredths of a per cent. */
struct supervisor_change {
    uint32_t thread_percentage;    /* 0: stays */
    uint32_t thread_request;       /* UINT32_MAX: stays; 0: none */
    uint32_t time_request;         /* UINT32_MAX: stays; 0: none */
    uint32_t time_limit;           /* 0: stays */
    uint32_t priority;             /* UINT32_MAX: stays */
    uint64_t memory_request;       /* bytes; PROTO_UNSET: stays; 0: none */
    uint32_t memory_request_share; /* of the device's, instead; 0: none */
    uint64_t memory_limit;         /* bytes; PROTO_UNSET: stays */
    uint32_t memory_share;         /* of the device's, hundredths of a per cent, instead; 0: none */
    uint64_t host_request;         /* bytes; PROTO_UNSET: stays; 0: none */
    uint64_t host_limit;           /* bytes; PROTO_UNSET: stays */
};

/* Changes nothing. */
static const struct supervisor_change supervisor_change_none = {
    .thread_request = UINT32_MAX,
    .time_request = UINT32_MAX,
    .priority = UINT32_MAX,
    .memory_request = PROTO_UNSET,
    .memory_limit = PROTO_UNSET,
    .host_request = PROTO_UNSET,
    .host_limit = PROTO_UNSET,
};

/* Of which client, or device. error: 0, or a number of the error table and a sentence in text, the
 * worker's own where it refused. */
typedef void supervisor_set_done(void *context, uint32_t number, uint32_t error, const char *text);

/*
 * Whether a change would be refused now: a number of the error table with a
 * sentence in why, or 0. A limit may not exceed the client's window of addresses,
 * which is fixed when it attaches, nor what the device has; a request may not exceed
 * its limit. Whether the clients' requests fit together only the worker knows.
 */
uint32_t supervisor_check(const struct supervisor *supervisor, uint32_t client,
                          const struct supervisor_change *change, char *why, size_t why_size);

/*
 * Changes the grant of an attached client that supervisor_check allows, work in
 * flight or not. A memory limit below what is in use takes nothing away; it refuses
 * what is asked for from now on. Returns 1 if all is done; 0 if a worker has to be
 * asked: done is then called exactly once, from the loop and never before this
 * returns; -ENOENT, -ENOSPC (what is to be guaranteed does not fit: supervisor_check
 * says why), or another -errno (done is not called, nothing has changed). by names who
 * asked, for the log.
 */
int supervisor_set(struct supervisor *supervisor, uint32_t client,
                   const struct supervisor_change *change, const char *by,
                   supervisor_set_done *done, void *context);

/*
 * The same, to undo changes of which one was refused, from within the `done` of the last
 * of them: a reload that began meanwhile waits for this, too.
 */
int supervisor_put_back(struct supervisor *supervisor, uint32_t client,
                        const struct supervisor_change *change, const char *by,
                        supervisor_set_done *done, void *context);

/*
 * Changes how the clients of a device share it: the parts (bits of enum schedule_part)
 * of `to`. Returns 1 if all is done (there is no worker now: its successor is told
 * before any client); 0 if the worker is asked: done is then called exactly once, from
 * the loop and never before this returns, and after a refusal everything is as it was;
 * -ENOENT (no such device) or another -errno (done is not called, nothing has changed).
 * Changes are carried out in order. by names who asked, for the log.
 */
int supervisor_schedule(struct supervisor *supervisor, uint32_t device, const struct schedule *to,
                        unsigned parts, const char *by, supervisor_set_done *done, void *context);

/* All clients of a user, or of a group's members. */
struct supervisor_whose {
    bool group;
    uint32_t id; /* uid or gid */
};

/* What they may have in total. */
struct supervisor_total_change {
    bool memory, host; /* what changes; the rest stays */
    uint64_t
        memory_limit; /* bytes of each GPU; PROTO_UNSET and no share: as the configuration says */
    uint32_t memory_share; /* of each GPU's, hundredths of a per cent, instead; 0: none */
    uint64_t host_limit;   /* bytes; PROTO_UNSET: as the configuration says */
};

/*
 * Limits what they have in total from now on, in place of what the configuration says, until that
 * says something else of them. A limit below what is in use takes nothing away. Returns 0; or a
 * number of the error table with a sentence in why, and nothing has changed. by names who asked,
 * for the log.
 */
uint32_t supervisor_total_set(struct supervisor *supervisor, const struct supervisor_whose *whose,
                              const struct supervisor_total_change *change, const char *by,
                              char *why, size_t why_size);

#define SUPERVISOR_TOTAL_HOST UINT32_MAX /* in place of a device: pinned host memory */

struct supervisor_total_view {
    uint64_t limit; /* PROTO_UNSET: none */
    uint64_t used;  /* or guaranteed */
    bool set;       /* the limit is no word of the configuration */
};

void supervisor_total_view(const struct supervisor *supervisor,
                           const struct supervisor_whose *whose, uint32_t device,
                           struct supervisor_total_view *view);

struct supervisor_config_view {
    const char *file; /* NULL: none is in force; true until the next reload */
    size_t profiles, rules;
};

void supervisor_config_view(const struct supervisor *supervisor,
                            struct supervisor_config_view *view);

/* error: 0, or a number of the error table with a sentence. */
typedef void supervisor_reload_done(void *context, uint32_t error, const char *text);

/*
 * Reads the configuration (settings) again and puts it in force whole, for clients that
 * attach from now on and, where it says something else of them than the one before, for
 * those attached and for the devices; or changes nothing. No client is dropped. Returns 1
 * if all is done; 0 if workers have to be asked: done is then called exactly once, from
 * the loop and never before this returns, and after a refusal everything is as it
 * was; -errno with a sentence in text (done is not called). While it is under way
 * supervisor_check, _set and _schedule refuse. Called at start, too.
 */
int supervisor_reload(struct supervisor *supervisor, char *text, size_t text_bytes,
                      supervisor_reload_done *done, void *context);

/*
 * Asks the worker what a client has used. done is called exactly once, from the
 * loop and never before this returns; usage is NULL if the client or the worker went
 * away meanwhile. Returns 0, -ENOENT (no such client, or not attached: done is
 * not called), or another -errno (likewise).
 */
int supervisor_usage(struct supervisor *supervisor, uint32_t client,
                     void (*done)(void *context, uint32_t client,
                                  const struct proto_worker_usage *usage),
                     void *context);

struct supervisor_trace_client {
    uint32_t number;
    char name[64]; /* control characters replaced */
    pid_t pid;     /* 0 if it is not visible from here */
    uid_t uid;
};

/* What ran on a device, written down by its worker. */
struct supervisor_trace {
    uint32_t device;
    uint64_t milliseconds; /* as asked */
    int memory;            /* read-only; the supervisor's own, closed after the call */
    const char *trouble;   /* why it ended before its time, or NULL */
    const struct supervisor_trace_client *clients; /* that were attached at any time of it */
    size_t client_count;
};

/* error: 0, or a number of the error table, a sentence in text, and no trace. */
typedef void supervisor_trace_done(void *context, uint32_t error, const char *text,
                                   const struct supervisor_trace *trace);

/*
 * Traces a device for so long (at most PROTO_TRACE_SECONDS_MAX seconds). done is called exactly
 * once, from the loop and never before this returns, unless the trace is abandoned. Returns 0, or
 * an error number with a sentence in why (done is not called): no such device, no worker, another
 * trace of it under way, no memory. by names who asked.
 */
uint32_t supervisor_trace(struct supervisor *supervisor, uint32_t device, uint64_t milliseconds,
                          const char *by, supervisor_trace_done *done, void *context, char *why,
                          size_t why_size);

/* Who asked with this context has enough: its trace ends now, and done is called, with that as its
 * trouble. Does nothing where there is none. */
void supervisor_trace_end(struct supervisor *supervisor, const void *context);

/* Who asked with this context is gone: its trace ends. Returns whether there was one: then done is
 * not called any more. */
bool supervisor_trace_abandon(struct supervisor *supervisor, const void *context);

uv_loop_t *supervisor_loop(const struct supervisor *supervisor);
const struct settings *supervisor_settings(const struct supervisor *supervisor);

#endif
