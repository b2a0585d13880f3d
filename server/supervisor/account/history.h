/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * history: what users have used, which faults there were, and how long devices took to recover,
 * since the start of this server. Numbers here only grow, so that a monitoring system can take
 * differences. The use of a client is counted among its user's when the client is gone.
 *
 * Users, and authors of faults, are limited in number: the rest share a row. Durations are counted
 * by powers of two of microseconds, as worker_usage has them. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_HISTORY_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/devices_max.h"
#include "common/latency.h"
#include "protocol.h"
#include "server/supervisor/settings.h"

enum {
    HISTORY_USERS_MAX = 1024,  /* rows: a user has one for each device */
    HISTORY_FAULTS_MAX = 1024, /* rows with an author */
};

/* In place of a uid: the users that found no row of their own; or a fault whose author is not
 * known. No process has this uid. */
#define HISTORY_NOBODY UINT32_MAX

/* The use of a device by one client, or by all clients of a user together. */
struct history_use {
    uint64_t launches, copies, copied_bytes;
    uint64_t gpu_ns, charged_ns;
    uint64_t throttled_ns[PROTO_HOLD_COUNT];
    uint64_t waits[LATENCY_BUCKETS];     /* commands, by their time in the ring */
    uint64_t latencies[LATENCY_BUCKETS]; /* measured batches, by their time at the driver */
};

struct history_user {
    uint32_t device, uid;
    struct history_use left; /* of clients that are gone */
    /* Of those that are there, as of the last history_count. */
    struct history_use now;
    uint32_t clients;
    uint64_t memory;
};

struct history_fault {
    uint32_t device, uid, error;
    uint64_t count;
};

struct history_device {
    uint64_t windows, window_ns;    /* quiet windows of workers that ended */
    uint64_t seen_windows, seen_ns; /* of the present one, as far as was heard */
    uint32_t seen_worker;           /* which that is */
    uint64_t lost_at;               /* the loss of a worker that was counted last */
    bool overran;                   /* the next loss was counted already, with its author */
    uint64_t recovered_from;        /* the loss whose recovery was counted last */
    uint64_t recovery_ns;           /* all recoveries together */
    uint64_t recoveries[LATENCY_BUCKETS];
};

/* All zero at first. */
struct history {
    struct history_user **users; /* sorted by device and uid */
    size_t user_count, user_room;
    struct history_fault *faults;
    size_t fault_count, fault_room;
    size_t authors; /* rows of faults with an author */
    struct history_device devices[DEVICES_MAX];
};

void history_close(struct history *history);

_Static_assert(sizeof(((struct proto_worker_usage *)0)->waits) ==
                   LATENCY_BUCKETS * sizeof(uint64_t),
               "");

/* Reads the answer of a worker about a client. */
void history_use_read(struct history_use *use, const struct proto_worker_usage *usage);

/* Adds a use to a sum. */
void history_use_add(struct history_use *sum, const struct history_use *use);

/* A client of this user is gone. Where memory is short, its use is lost. */
void history_leave(struct history *history, uint32_t device, uint32_t uid,
                   const struct history_use *use);

/* Counts the clients that are there anew: history_count_begin, then history_count for each. */
void history_count_begin(struct history *history);
void history_count(struct history *history, uint32_t device, uint32_t uid,
                   const struct history_use *use, uint64_t memory);

/* A client of this user failed with this error of the table, and ends. */
void history_fault(struct history *history, uint32_t device, uint32_t uid, uint32_t error);
/* The same; it takes its worker along, whose loss is no fault of its own then. */
void history_overrun(struct history *history, uint32_t device, uint32_t uid, uint32_t error);

/* A worker was lost with this error at this time (CLOCK_MONOTONIC). uid: the author, or
 * HISTORY_NOBODY. Each loss counts once, the first time. */
void history_lose(struct history *history, uint32_t device, uint32_t uid, uint32_t error,
                  uint64_t lost_at);

/* The device serves again; its worker was lost at this time (CLOCK_MONOTONIC). Each loss counts
 * once. */
void history_recover(struct history *history, uint32_t device, uint64_t lost_at, uint64_t ready_at);

/* Takes the quiet windows from an answer of the device's worker of this number. */
void history_windows(struct history *history, uint32_t device, uint32_t worker,
                     const struct proto_worker_usage *usage);

#endif
