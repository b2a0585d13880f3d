/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * loader: a thread for what takes long: reads and compiles clients' modules; another
 * instance clears new device memory.
 *
 * A compiler may need minutes for an image that was made for that, and everybody's
 * requests go through the control thread. So that thread only hands jobs over and
 * collects them when they are done; a job's module is marked busy meanwhile and
 * touched by nobody else. Clients take turns: one that sends many images waits for
 * itself.
 */
#ifndef GPUSHARE_SERVER_WORKER_LOADER_H
#define GPUSHARE_SERVER_WORKER_LOADER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/worker/module.h"

enum loader_kind { LOADER_INSPECT, LOADER_LOAD, LOADER_CLEAR };

struct loader_job {
    struct loader_job *next;
    enum loader_kind kind;
    struct client *client;
    struct module *module; /* NULL: LOADER_CLEAR */
    uint32_t serial;       /* of the request */
    int fd;                /* LOADER_INSPECT: the image; LOADER_CLEAR: the memory; the job's */
    uint64_t address;      /* LOADER_CLEAR */
    uint64_t count;
    uint64_t global_base; /* LOADER_LOAD */
    /* What came of it: */
    uint32_t error; /* 0, or why says more */
    struct proto_worker_module_needs needs;
    uint32_t functions;
    struct refusal why;
};

struct worker;

struct loader {
    struct worker *worker;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct loader_job *queued, *done; /* in order of arrival; newest first */
    uint64_t turn;
    bool running, stop;
};

/* name: of the thread, at most 15 letters. 0 or an error number. */
uint32_t loader_start(struct loader *loader, struct worker *worker, const char *name, char *why,
                      size_t why_size);

/* Waits for the job at hand; what is queued or done is dropped. Idempotent. */
void loader_stop(struct loader *loader);

/* The rest is for the control thread. */

/* Takes the job over (malloc'ed) and marks its module busy. */
void loader_submit(struct loader *loader, struct loader_job *job);

/* A job that is done, its module no longer busy; NULL if there is none. The caller closes its
 * descriptor and frees it. */
struct loader_job *loader_collect(struct loader *loader);

/* Forgets what is queued for a client that leaves. Its client->loading says what is left. */
void loader_forget(struct loader *loader, struct client *client);

#endif
