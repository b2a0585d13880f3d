/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * completer: watches the private shadows of the clients' timelines.
 *
 * The device can't wake a thread, so the completer looks at its words:
 *
 *   - It polls with a growing pause while a thread sleeps on a timeline, a full client waits for
 *     room, a lease waits for the end of another client's work, memory waits to be freed, or a ring
 *     waits for another device.
 *   - While there is only work in flight it ticks: it asks now and then whether the device still
 *     lives, since no completion ever arrives after a fault.
 *   - Otherwise it sleeps. wake_completer (wake.h) ends its rest.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_COMPLETER_H
#define GPUSHARE_SERVER_WORKER_RUN_COMPLETER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/thread.h"
#include "server/worker/client/client.h"

struct worker;

struct completer {
    struct worker *worker;
    struct thread thread;
    _Atomic uint32_t stop;
    uint64_t checked_at;        /* when it last asked whether the device lives, ns */
    const uint32_t *wakes[256]; /* timeline words whose sleepers have to be woken */
    uint32_t wake_count;
};

/* Starts the thread. Returns 0, or an error number with a sentence in why. Control thread. */
uint32_t completer_start(struct completer *completer, struct worker *worker, struct error *why);
/* Ends the thread and waits for it. Idempotent. Control thread. */
void completer_stop(struct completer *completer);

#endif
