/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * completer: watches the private shadows of the clients' timelines.
 *
 * The device can't wake anybody. While somebody sleeps on a timeline, while the
 * submitter needs room, while a lease waits for the end of another's work, while
 * there is something to free or another device to wait for, it polls with a growing
 * pause; while only work is in flight it looks now and then whether the device still
 * lives, for after a fault no completion ever arrives; otherwise it sleeps. wake_completer (wake.h)
 * ends its rest.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_COMPLETER_H
#define GPUSHARE_SERVER_WORKER_RUN_COMPLETER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "server/worker/client/client.h"

struct worker;

struct completer {
    struct worker *worker;
    pthread_t thread;
    bool running;
    _Atomic uint32_t stop;
    uint64_t checked;           /* when the device was last asked whether it lives, ns */
    const uint32_t *wakes[256]; /* words whose sleepers are to be woken */
    uint32_t wake_count;
};

/* 0 or an error number with a sentence. */
uint32_t completer_start(struct completer *completer, struct worker *worker, struct error *why);
/* Ends the thread. Idempotent. */
void completer_stop(struct completer *completer);

/* ---- the part, for tests: what one look at everything found ---- */
struct completer_look {
    bool urgent;       /* somebody waits */
    bool in_use;       /* work is in flight */
    bool progress;     /* something was reached since the last look */
    uint64_t patience; /* ns: the device may idle if the end of work is seen later than this */
};
struct completer_look completer_look(struct completer *completer);

#endif
