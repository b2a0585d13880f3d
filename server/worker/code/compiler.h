/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * compiler: clients' PTX compiled where it stops nobody: in a process apart, which is killed when
 * it takes too long or too much memory. The code that it made is kept, so that one compilation
 * serves all clients.
 *
 * Each compilation has a process of its own (compiler_process.h), a child of the calling thread:
 * a text that was made to harm a compiler harms that one, and the process dies with the thread. An
 * owner, which is a user, has one at a time, and so has a text: whoever comes second finds its
 * code.
 *
 * Any number of threads may call compiler_make; the rest is for the thread that owns the compiler,
 * while no other uses it, except compiler_stop.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_COMPILER_H
#define GPUSHARE_SERVER_WORKER_CODE_COMPILER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "server/worker/code/cache/code_cache.h"
#include "server/worker/code/compiler_process.h"
#include "server/worker/code/ptx_link.h"

#define COMPILER_SECONDS 60 /* unless an option says otherwise */

struct compiler_options {
    const char *program; /* gpushare-worker's path; the caller's */
    const char *driver;  /* the driver's path; the caller's */
    const char *uuid;    /* of the device, 32 digits, the caller's; NULL: it goes by its number */
    int device;
    uint32_t seconds; /* one compilation may take; 0: COMPILER_SECONDS */
    uint64_t memory;  /* bytes that one compilation may take; 0: the default of compiler_open */
    int store;        /* descriptor for code_cache_open, taken over; -1: none */
};

/* A text's owner, which is a user, and the client that loads it. */
struct compiler_caller {
    uint32_t owner, client;
};

/* A text at work. */
struct compiler_seat {
    struct compiler_caller caller;
    struct code_name text;
    pid_t pid;  /* 0: it has not begun, or has ended */
    bool taken; /* by a thread */
    bool gone;  /* nobody waits for it any more */
};

/* No more threads than these compile at a time. */
enum { COMPILER_SEATS = 2 };

struct compiler {
    struct compiler_options options;
    pthread_mutex_t lock; /* of the seats */
    struct compiler_seat seats[COMPILER_SEATS];
    void (*ended)(void *context); /* a process has; any thread; NULL: nobody asks */
    void *context;
    struct code_cache cache;
    int stop;                     /* eventfd, readable: no compilation goes on; -1: closed */
    _Atomic uint32_t made, found; /* compilations that were begun; texts that were known */
    _Atomic bool absent;          /* the last process could not start */
};

/* Of one text: compiled is the code, which the caller releases; or NULL, and result is the driver's
 * refusal, with what its compiler wrote in log. */
struct compiler_result {
    bool busy; /* the owner, or this text, has a process at work already: nothing was compiled */
    struct code_name text;
    cuda_result result;
    struct compiled *compiled;
    bool found;  /* it was known */
    bool absent; /* no process could start: nothing was compiled, and a warning says so */
    char log[PTX_LINK_LOG];
};

/* *compiler is zeroed or was closed; who is told of ends (ended) stays. memory 0: an eighth of the
 * machine's, 512 MiB at least. Returns 0, or an error number with a sentence in why; the compiler
 * is closed then. */
uint32_t compiler_open(struct compiler *compiler, const struct compiler_options *options,
                       struct error *why);
void compiler_close(struct compiler *compiler); /* no thread uses it any more; idempotent */

/* Whether it was opened, and not closed. */
bool compiler_is_open(const struct compiler *compiler);

/* Ends all compilations, and those that begin later. Any thread; idempotent. */
void compiler_stop(struct compiler *compiler);

/* Whether this owner has a process at work, or this text has: a text that another owner has there
 * is known soon. text NULL: none. Any thread. */
bool compiler_works(struct compiler *compiler, uint32_t owner, const struct code_name *text);

/* The client leaves. Finds the text that it has at work: false if there is none. Any thread. */
bool compiler_text_of(struct compiler *compiler, uint32_t client, struct code_name *text);

/* Ends the process that is at work for the client: nobody waits for it. Any thread; idempotent. */
void compiler_abandon(struct compiler *compiler, uint32_t client);

/*
 * Compiles a text of this caller, which ends with NUL. code_max: bytes that the code may have;
 * room: bytes that code which nobody loads now may take. Returns 0 with *result filled, or an error
 * number with a sentence in why: the process was ended for its time or its memory, or it crashed.
 * Blocks until then.
 */
uint32_t compiler_make(struct compiler *compiler, struct compiler_caller caller, const char *text,
                       uint64_t code_max, uint64_t room, struct compiler_result *result,
                       struct error *why);

/* The code of a text that was compiled before, which the caller releases; NULL: it is not known.
 * room: as for compiler_make. Any thread. */
struct compiled *compiler_find(struct compiler *compiler, const struct code_name *text,
                               uint64_t room);

/* A text is read by the worker before it is compiled, and that may take as long. compiler_deadline:
 * when a reading that begins now has to end, in ns of clock_now. compiler_refuse_time: counts
 * and refuses a text that took too long; returns an error number with a sentence in why. Any
 * thread. */
uint64_t compiler_deadline(const struct compiler *compiler);
uint32_t compiler_refuse_time(const struct compiler *compiler, struct error *why);

/* Gives memory back until what is kept takes at most room bytes. Any thread. */
void compiler_trim(struct compiler *compiler, uint64_t room);

#endif
