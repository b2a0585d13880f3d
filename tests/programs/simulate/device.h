/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device: a GPU and a submitter on a virtual clock, which run the real scheduler.
 *
 * Each engine runs one kernel at a time to its end: first the most urgent client's, and clients of
 * one level in turns. Time is counted here by the kernels, not by the scheduler. Deterministic;
 * allocates nothing.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_SIMULATE_DEVICE_H
#define GPUSHARE_TESTS_PROGRAMS_SIMULATE_DEVICE_H

#include <stddef.h>

#include "server/scheduler/carry.h"
#include "server/scheduler/scheduler.h"

enum {
    DEVICE_CLIENTS = 64,
    DEVICE_ENGINES = 8,
    DEVICE_QUEUE = 256,
    DEVICE_WAITS = 8 * 48,
    DEVICE_UNSEEN = 4096
};

struct device;
struct device_client;

struct device_kernel {
    uint64_t ns, submitted_at;
};

/* The length of the client's next kernel in ns; `left` until its lease ends. */
typedef uint64_t device_kernel_fn(struct device_client *client, uint64_t left);

struct device_client {
    struct scheduler_client scheduled;
    bool present;
    uint32_t number, engine;
    uint64_t pending; /* kernels that wait to be submitted; UINT64_MAX: there are always more */
    uint64_t random;
    uint64_t shortest, longest; /* lengths of its kernels, ns */
    device_kernel_fn *kernel;
    struct device_kernel queue[DEVICE_QUEUE];
    uint32_t head, tail;
    /* Results: */
    uint64_t ran_ns; /* sum over its kernels that have ended */
    uint64_t kernels;
    uint64_t wait_most;                     /* longest time from submission to a kernel's start */
    uint64_t unserved_since, unserved_most; /* time with work until a kernel begins */
    bool waiting;
    uint64_t served; /* place of its last kernel in the order of all kernels */
    void *user;
};

struct device_engine {
    struct device_client *runs;
    uint64_t began, ends;
    uint64_t busy_ns; /* sum over kernels that have ended */
};

/* The end of a kernel that the submitter has not seen yet. */
struct device_unseen {
    struct device_client *client; /* NULL: it has left */
    uint64_t ns, seen_at;
};

struct device {
    struct scheduler scheduler;
    uint64_t now, events;
    uint64_t still; /* steps since the clock last moved */
    struct scheduler_account accounts[DEVICE_CLIENTS];
    struct scheduler_account *account; /* of clients that are added from now on; or NULL */
    struct device_client clients[DEVICE_CLIENTS];
    uint32_t client_count; /* slots that are or were in use */
    struct device_engine engines[DEVICE_ENGINES];
    uint32_t engine_count;
    uint64_t switch_ns; /* lost whenever an engine goes on to another client's kernel */
    uint64_t late_most; /* the submitter sees a kernel's end up to so late; 0: at once */
    uint64_t late_random;
    struct device_unseen unseen[DEVICE_UNSEEN]; /* a ring, in the order in which they are seen */
    uint32_t unseen_head, unseen_tail;
    struct device_client *last[DEVICE_ENGINES];
    uint64_t served;              /* number of kernels begun, for taking turns */
    uint32_t waits[DEVICE_WAITS]; /* clients' waits for a kernel to begin, by device_wait_bucket */
    uint32_t overlapped;          /* kernels begun beside another client's lease; tests demand 0 */
};

uint64_t device_random(uint64_t *state);
/* A random number between two bounds; each order of magnitude is as likely as the others. */
uint64_t device_random_log(uint64_t *state, uint64_t least, uint64_t most);

void device_open(struct device *device, const struct scheduler_schedule *settings);

/* The account of this number, made if no client counts in one; NULL for 0, and where there are as
 * many accounts as there can be clients. */
struct scheduler_account *device_account(struct device *device, uint64_t number);

/* Adds a client without work in a free slot. NULL: the scheduler refused, and why says so. */
struct device_client *device_add(struct device *device, const struct scheduler_limits *limits,
                                 const struct sm_group_set *sm_groups, uint32_t engine,
                                 uint64_t seed, struct error *why);
void device_remove(struct device *device, struct device_client *client);

/* The scheduler's knowledge of all clients and accounts, as carry.h takes it. */
struct device_carried {
    struct carry_client clients[DEVICE_CLIENTS];
    struct carry_account accounts[DEVICE_CLIENTS];
    bool known[DEVICE_CLIENTS];
};
void device_take(const struct device *device, struct device_carried *to);

/*
 * The process that had the scheduler ends, and after `pause` another one begins, with what was
 * taken: of a client that has come since, nothing. Work that was submitted and not finished is
 * lost; the part of it that ran counts as time that the client had. Returns with every client
 * without work.
 */
void device_hand_over(struct device *device, const struct device_carried *from, uint64_t pause);

/* Gives the client so many kernels of work. 0 takes away the kernels that are not submitted. */
void device_work(struct device *device, struct device_client *client, uint64_t kernels);

/* Runs until the clock shows this time. */
void device_run(struct device *device, uint64_t until);

/* Runs until a kernel ends, or until this time. Returns the client whose kernel ended, or NULL. */
struct device_client *device_step(struct device *device, uint64_t until);

/* Device time that the client had, with the part of its running kernel. */
uint64_t device_had(const struct device *device, const struct device_client *client);
/* The bucket of a wait, an eighth of a doubling wide; and the wait that a bucket stands for. */
uint32_t device_wait_bucket(uint64_t ns);
double device_bucket_wait(uint32_t bucket);

/* Device time that all clients had on an engine. */
uint64_t device_busy(const struct device *device, uint32_t engine);

#endif
