/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_caller: the caller thread, which makes the calls of driver_calls.h: those for which the
 * control thread must not wait, and which need no quiet window.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_DRIVER_CALLER_H
#define GPUSHARE_SERVER_WORKER_RUN_DRIVER_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/thread.h"

struct worker;

struct driver_caller {
    struct worker *worker;
    struct thread thread;
    uint64_t register_at; /* ns: no step of a registration before; its own thread */
};

/* 0 or an error number with a sentence. */
uint32_t driver_caller_start(struct driver_caller *caller, struct worker *worker,
                             struct error *why);

/* Ends the thread, after the step that it is at. Idempotent. */
void driver_caller_stop(struct driver_caller *caller);

#endif
