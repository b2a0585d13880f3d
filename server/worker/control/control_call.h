/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_call: requests whose calls of the driver another thread makes.
 *
 * A handler puts what it knows into a call of its own, whose first member is a struct control_call,
 * and leaves it. The caller thread makes it (driver_calls.h); then the control thread ends it:
 * changes the client's tables and answers. Meanwhile the client stays, and nothing
 * that it gives up is given up. Control thread; what returns int is 0 or -errno of an answer that
 * could not be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CALL_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CALL_H

#include "server/worker/control/request.h"
#include "server/worker/worker.h"

struct control_call {
    struct driver_call call;
    struct request request; /* to answer; it has no message any more */
    /* Finishes and answers on the control thread; the call is freed after it. */
    int (*end)(struct control_call *call);
};

/* Makes a call of this many bytes, of which all that the caller adds is zero. NULL: no memory. */
void *control_call_new(const struct request *request, size_t bytes,
                       bool (*make)(struct driver_call *call),
                       int (*end)(struct control_call *call));

/* As control_call_new, in zeroed memory from calloc, which is the call's then. */
void control_call_open(struct control_call *call, const struct request *request,
                       bool (*make)(struct driver_call *call),
                       int (*end)(struct control_call *call));

/* Leaves the call to the caller thread, and gives it up. */
void control_call_leave(struct control_call *call);

/* Ends the calls that were made. */
int control_call_finish(struct worker *worker);

/* The worker ends, nothing runs on the device any more and the caller thread has ended: makes and
 * ends all that was left. */
void control_call_finish_all(struct worker *worker);

#endif
