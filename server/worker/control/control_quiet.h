/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_quiet: what the control thread leaves to quiet windows: unloading modules and giving back
 * registered memory, which wait for the device.
 *
 * Requests are answered when they have been carried out. Control thread; what returns int is 0 or
 * -errno of an answer that could not be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_QUIET_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_QUIET_H

#include "server/worker/worker.h"

struct growth;

/* Finishes a request when the device's part is done. request: as deferred, the callee's; NULL: the
 * client itself ends. Returns 0 or -errno. */
typedef int control_quiet_end(struct worker *worker, struct client *client,
                              struct retirement *request);

/* Defers a request that retire_take returned, which holds all that this needs. */
void control_quiet_retire(struct worker *worker, struct client *client, struct retirement *request,
                          control_quiet_end *end);

/* Defers the end of a client, which is LEFT and quiet, or was refused while ATTACHING. Idempotent.
 * It needs no memory, so that a worker without any still ends clients. */
void control_quiet_leave(struct worker *worker, struct client *client, control_quiet_end *end);

/* Has room made for the local memory of launches that wait for it, where a client wishes that.
 * False: no memory, and the wish is lost: the worker has to end. */
bool control_quiet_grow(struct worker *worker);
/*
 * Room for so much local memory a thread, made in a window that something else asks for. The first
 * takes what that needs: false if there is no memory, and otherwise *growth, which is NULL if there
 * is room already, goes to one of the other two. These have it done, or give it back.
 */
bool control_quiet_grow_reserve(struct worker *worker, uint64_t bytes, struct growth **growth);
void control_quiet_grow_commit(struct worker *worker, struct growth *growth);
void control_quiet_grow_drop(struct growth *growth);

/* Ends what was carried out, and answers. */
int control_quiet_finish(struct worker *worker);

/* The worker ends, nothing runs on the device any more and the quiet thread has ended: carries out
 * and ends all that is deferred. */
void control_quiet_finish_all(struct worker *worker);

#endif
