/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_call: requests whose calls of the driver another thread makes.
 *
 * A handler puts what it knows into a call of its own, whose first member is a struct control_call,
 * and leaves it. The caller thread makes it (driver_calls.h); then the control thread ends it:
 * changes the client's tables, answers, and frees the call. Meanwhile the client stays, and nothing
 * that it gives up is given up. Control thread; what returns int is 0 or -errno of an answer that
 * could not be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CALL_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CALL_H

#include "server/worker/control/request.h"
#include "server/worker/worker.h"

struct control_call {
    struct driver_call call;
    struct worker *worker;
    struct client *client;
    uint64_t serial; /* of the supervisor's request; 0: no answer is due */
    /* Finishes and answers on the control thread, and frees the call. */
    int (*end)(struct control_call *call);
};

/* Makes a call of this many bytes, of which all that the caller adds is zero. NULL: no memory. */
void *control_call_new(struct worker *worker, struct client *client, uint64_t serial, size_t bytes,
                       bool (*make)(struct driver_call *call),
                       int (*end)(struct control_call *call));

/* Leaves the call to the caller thread. It owns itself from now on. */
void control_call_leave(struct control_call *call);

/* Answer the request that the call was made for, if there was one. */
int control_call_refuse(const struct control_call *call, const struct error *why);
int control_call_answer(const struct control_call *call, uint16_t opcode, const void *body);

/* Ends the calls that were made. */
int control_call_finish(struct worker *worker);

/* The worker ends, nothing runs on the device any more and the caller thread has ended: makes and
 * ends all that was left. */
void control_call_finish_all(struct worker *worker);

#endif
