/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * activity: the page in which a worker's threads note what they do, for the supervisor to read
 * while the worker can't answer.
 *
 * The supervisor raises `asked` from time to time. Each thread that serves all clients copies the
 * word to its own `beat` in every round of its loop and with each client that it works for, or says
 * that it rests. A thread that does neither hangs. Each thread also notes the call of the driver
 * that it is in. Threads that compile count that here.
 *
 * All accesses are relaxed: nothing is concluded from the order of two words. The supervisor makes
 * the page, and trusts no number in it.
 */
#ifndef GPUSHARE_COMMON_CUDA_ACTIVITY_H
#define GPUSHARE_COMMON_CUDA_ACTIVITY_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/cuda/cuda_driver.h"

enum activity_thread {
    ACTIVITY_CONTROL,
    ACTIVITY_SUBMITTER,
    ACTIVITY_COMPLETER,
    ACTIVITY_SERVING, /* the threads above serve all clients: the number of them */
    ACTIVITY_QUIET = ACTIVITY_SERVING,
    ACTIVITY_CALLER,
    ACTIVITY_LOADER,
    ACTIVITY_LOADER_SECOND,
    ACTIVITY_CLEARER,
    ACTIVITY_THREADS
};

/* The calls of the driver, by number. */
enum activity_call {
    ACTIVITY_NO_CALL,
    ACTIVITY_BATCH, /* a batch of launches and copies, between two of its calls */
#define X(name, symbol, version, need, params) ACTIVITY_##name,
    CUDA_DRIVER_ENTRIES(X)
#undef X
        ACTIVITY_CALLS
};

/* Compilations of clients' code, since the worker started. */
enum activity_count {
    ACTIVITY_COMPILING,           /* now */
    ACTIVITY_COMPILED,            /* came to their end */
    ACTIVITY_COMPILE_KNOWN,       /* texts that another compilation had served */
    ACTIVITY_COMPILE_OVER_TIME,   /* ended by the limit of time */
    ACTIVITY_COMPILE_OVER_MEMORY, /* by that of memory */
    ACTIVITY_COUNTS
};

struct activity_slot {
    _Alignas(64) _Atomic uint32_t beat; /* `asked`, as the thread saw it last */
    _Atomic uint32_t rests;             /* 1: it sleeps until it is woken */
    _Atomic uint32_t call;              /* enum activity_call */
    _Atomic uint64_t called_at;         /* ns of clock_now; 0: not noted */
};

struct activity_page {
    _Alignas(64) _Atomic uint32_t asked;
    struct activity_slot thread[ACTIVITY_THREADS];
    _Atomic uint32_t count[ACTIVITY_COUNTS];
};

/* The thread's name, as the worker's process shows it. Static. thread < ACTIVITY_THREADS. */
const char *activity_thread_name(enum activity_thread thread);

/* The name of a call, as CUDA spells it; NULL for ACTIVITY_NO_CALL and numbers that are no call.
 * Static. */
const char *activity_call_name(uint32_t call);

#endif
