/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * loader: threads for work that takes long. One instance has two threads that read and compile
 * clients' modules; another instance has one that clears new device memory.
 *
 * A compiler may need minutes for an image that was made for that, and every client's requests go
 * through the control thread. So the control thread only hands jobs over, and collects them when
 * they are done. A job's module is busy meanwhile, and no other thread touches it.
 *
 * Owners take turns, and of an owner its clients. A client has one job at work at a time, so one
 * that sends many images waits only for itself. An owner has one text at the compiler at a time; a
 * job that finds another one there goes back into the queue, and its thread serves others
 * meanwhile.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_LOADER_H
#define GPUSHARE_SERVER_WORKER_CODE_LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/list.h"
#include "common/thread.h"
#include "server/worker/code/client_module.h"
#include "server/worker/code/cache/code_cache.h"
#include "server/worker/calls/owner_turns.h"
#include "server/worker/calls/quiet_calls.h"

enum loader_kind { LOADER_INSPECT, LOADER_LOAD, LOADER_CLEAR };

struct loader_job {
    struct queue_link link; /* among those that are queued, or done */
    enum loader_kind kind;
    struct client *client;
    struct client_module *module; /* NULL: LOADER_CLEAR */
    uint64_t serial;              /* of the supervisor's request */
    struct quiet_caller caller;   /* the client, for quiet_calls.h */
    int fd; /* the job's own: the image of LOADER_INSPECT, the memory of LOADER_CLEAR; or -1 */
    uint64_t address; /* LOADER_CLEAR */
    uint64_t count;
    uint64_t global_base;  /* LOADER_LOAD */
    bool again;            /* LOADER_LOAD: see struct module_load_target */
    bool compiles;         /* it waits until neither its owner nor its text has a process at work */
    struct code_name text; /* then: which */
    /* The result: */
    uint32_t error; /* 0, or an error number that why explains */
    struct proto_worker_module_needs needs;
    uint32_t functions;
    struct error why;
};

struct worker;

enum loader_which { LOADER_MODULES, LOADER_MEMORY };

struct loader {
    struct worker *worker;
    enum loader_which which;
    struct thread threads[CODE_MEMORY_LOADS];
    struct client *working[CODE_MEMORY_LOADS]; /* client whose job each thread works on, or NULL */
    atomic_bool gone[CODE_MEMORY_LOADS];       /* nobody waits for that job any more */
    unsigned started;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct queue queued, done; /* oldest first */
    uint64_t turn;             /* jobs begun; orders clients by their last turn */
    struct owner_turns owners;
    bool stop;
};

/* Starts the threads. Returns 0, or an error number with a sentence in why. Control thread. */
uint32_t loader_start(struct loader *loader, struct worker *worker, enum loader_which which,
                      struct error *why);

/* Ends the reading of texts, waits until the threads have ended the jobs they work on, then drops
 * all other jobs, done ones included. Idempotent. Control thread. */
void loader_stop(struct loader *loader);

/* After loader_stop, which drops what is submitted later, or of a zeroed loader. Control thread. */
void loader_close(struct loader *loader);

/* The functions below are for the control thread. */

/* Takes over the job (malloc'ed), and marks its module busy. */
void loader_submit(struct loader *loader, struct loader_job *job);

/* Takes a job that is done; its module is no longer busy. NULL if there is none. The caller closes
 * the job's descriptor and frees the job. */
struct loader_job *loader_collect(struct loader *loader);

/* Drops the queued jobs of a client that leaves, and ends its compilation if no other job waits for
 * that text. A job at work ends early if it reads a text; client->control.loading counts jobs at
 * work, and those that are done and not collected. */
void loader_forget(struct loader *loader, struct client *client);

#endif
