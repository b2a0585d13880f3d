/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * loader: threads for what takes long: some read and compile clients' modules; another
 * instance's clears new device memory.
 *
 * A compiler may need minutes for an image that was made for that, and everybody's
 * requests go through the control thread. So that thread only hands jobs over and
 * collects them when they are done; a job's module is marked busy meanwhile and
 * touched by nobody else. Clients take turns, and have one job at work at a time: one
 * that sends many images waits for itself, and one whose image never finishes compiling
 * (no driver call can be interrupted) leaves the other threads to the others.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_LOADER_H
#define GPUSHARE_SERVER_WORKER_CODE_LOADER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "server/worker/code/client_module.h"

enum loader_kind { LOADER_INSPECT, LOADER_LOAD, LOADER_CLEAR };

struct loader_job {
    struct loader_job *next;
    enum loader_kind kind;
    struct client *client;
    struct client_module *module; /* NULL: LOADER_CLEAR */
    uint64_t serial;              /* of the request */
    int fd;           /* LOADER_INSPECT: the image; LOADER_CLEAR: the memory; the job's */
    uint64_t address; /* LOADER_CLEAR */
    uint64_t count;
    uint64_t global_base; /* LOADER_LOAD */
    /* The result: */
    uint32_t error; /* 0, or why says more */
    struct proto_worker_module_needs needs;
    uint32_t functions;
    struct error why;
};

struct worker;

enum loader_which { LOADER_MODULES, LOADER_MEMORY };

struct loader {
    struct worker *worker;
    enum loader_which which;
    pthread_t threads[CODE_MEMORY_LOADS];
    struct client *working[CODE_MEMORY_LOADS]; /* whose job each thread is at; NULL: none */
    unsigned thread_count, started;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct loader_job *queued, *done; /* oldest first */
    uint64_t turn;
    bool stop;
};

/* 0 or an error number. */
uint32_t loader_start(struct loader *loader, struct worker *worker, enum loader_which which,
                      struct error *why);

/* Waits for the jobs at hand; what is queued or done is dropped. Idempotent. */
void loader_stop(struct loader *loader);

/* The rest is for the control thread. */

/* Takes the job over (malloc'ed) and marks its module busy. */
void loader_submit(struct loader *loader, struct loader_job *job);

/* A job that is done, its module no longer busy; NULL if there is none. The caller closes its
 * descriptor and frees it. */
struct loader_job *loader_collect(struct loader *loader);

/* Forgets what is queued for a client that leaves. Its client->control.loading says what is left.
 */
void loader_forget(struct loader *loader, struct client *client);

#endif
