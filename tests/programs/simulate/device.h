/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device: a GPU and a submitter on a virtual clock, to run the real scheduler with.
 *
 * Each engine runs one kernel at a time, to its end: the most urgent client's first, clients of
 * one level in turns. What ran is counted here, by the kernels, not by the scheduler.
 * Deterministic; nothing is allocated.
 */
#ifndef GPUSHARE_TESTS_SIMULATE_DEVICE_H
#define GPUSHARE_TESTS_SIMULATE_DEVICE_H

#include <stddef.h>

#include "server/scheduler/scheduler.h"

enum { DEVICE_CLIENTS = 64, DEVICE_ENGINES = 8, DEVICE_QUEUE = 256, DEVICE_WAITS = 8 * 48 };

struct device;
struct device_client;

struct device_kernel {
    uint64_t ns, submitted_at;
};

/* How long the client's next kernel runs; `left` until its lease ends. */
typedef uint64_t device_kernel_fn(struct device_client *client, uint64_t left);

struct device_client {
    struct scheduler_client scheduled;
    bool present;
    uint32_t number, engine;
    uint64_t pending; /* kernels to submit; UINT64_MAX: always more */
    uint64_t random;
    uint64_t shortest, longest; /* of kernels */
    device_kernel_fn *kernel;
    struct device_kernel queue[DEVICE_QUEUE];
    uint32_t head, tail;
    /* what happened */
    uint64_t ran_ns; /* of kernels done */
    uint64_t kernels;
    uint64_t wait_most;                     /* from submission to the start of a kernel */
    uint64_t unserved_since, unserved_most; /* with work, until a kernel begins */
    bool waiting;
    uint64_t served; /* its last kernel's place in the order of all */
    void *user;
};

struct device_engine {
    struct device_client *runs;
    uint64_t began, ends;
    uint64_t busy_ns; /* of kernels done */
};

struct device {
    struct scheduler scheduler;
    uint64_t now, events;
    struct device_client clients[DEVICE_CLIENTS];
    uint32_t client_count; /* slots in use or used */
    struct device_engine engines[DEVICE_ENGINES];
    uint32_t engine_count;
    uint64_t switch_ns; /* lost whenever an engine's kernel is another client's than before it */
    struct device_client *last[DEVICE_ENGINES];
    uint64_t served;              /* kernels begun, to take turns */
    uint32_t waits[DEVICE_WAITS]; /* clients' waits for a kernel to begin, by device_wait_bucket */
    uint32_t overlapped; /* kernels begun beside another client's lease; must stay 0 in the tests */
};

uint64_t device_random(uint64_t *state);
/* Between two bounds, each order of magnitude as likely as the other. */
uint64_t device_random_log(uint64_t *state, uint64_t least, uint64_t most);

void device_open(struct device *device, const struct scheduler_settings *settings);

/* A client arrives in a free slot, without work; NULL with the refusal in why. */
struct device_client *device_add(struct device *device, const struct scheduler_limits *limits,
                                 const struct share_set *sm_groups, uint32_t engine, uint64_t seed,
                                 struct error *why);
void device_remove(struct device *device, struct device_client *client);

/* Gives it work; 0 takes what is not submitted away. */
void device_work(struct device *device, struct device_client *client, uint64_t kernels);

/* Runs until the clock shows this. */
void device_run(struct device *device, uint64_t until);

/* Runs until something is done, or until then. Returns the client whose kernel ended, or NULL. */
struct device_client *device_step(struct device *device, uint64_t until);

/* Device time the client had, its running kernel's part included. */
uint64_t device_had(const struct device *device, const struct device_client *client);
/* A wait's bucket, an eighth of a doubling wide, and the wait that a bucket stands for. */
uint32_t device_wait_bucket(uint64_t ns);
double device_bucket_wait(uint32_t bucket);

/* Device time that anybody had on an engine. */
uint64_t device_busy(const struct device *device, uint32_t engine);

#endif
