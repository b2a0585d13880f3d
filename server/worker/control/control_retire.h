/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_retire: frees what a client asked to be freed, once the device is done with it
 * (retire.h).
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_RETIRE_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_RETIRE_H

#include "server/worker/client/retire.h"
#include "server/worker/control/request.h"

/* Carries out the frees whose work is done, and answers them. Takes the client's lock. Returns 0,
 * or -errno if an answer can't be sent. Control thread. */
int control_retire_finish(struct worker *worker, struct client *client);

/* As retire_request (retire.h), with the memory that carrying it out takes: it may come to that
 * when there is none. Under the client's lock. */
struct retirement *control_retire_request(struct client *client, enum retire_kind kind,
                                          uint64_t serial);

/* Answers a request to free something: at once if nothing is in flight, else control_progress
 * answers it. asked is the retirement that was made for the request; NULL: there was no memory for
 * it, and the request is refused. Returns 0, or -errno if no answer can be sent. Control thread. */
int control_retire_answer(const struct request *request, const struct retirement *asked);

/* Carries out a request that is ready, frees it and answers it. */
int control_retire_end(struct worker *worker, struct client *client, struct retirement *request);

#endif
