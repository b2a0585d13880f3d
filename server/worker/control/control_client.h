/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_client: the messages about a client itself: it comes, goes, moves, is linked
 * with another, has used so much. Control thread. Functions that take a request return 0, or
 * -errno if no answer can be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CLIENT_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CLIENT_H

#include "server/worker/control/request.h"

int control_client_attach(struct request *request);
int control_client_window(struct request *request);
int control_client_link(struct request *request);
int control_client_usage(struct request *request);
/* Answered by control_progress when nothing of the client is left. */
int control_client_detach(struct request *request);

/* How much the client has used so far. Takes its lock. */
void control_client_used(struct worker *worker, struct client *client,
                         struct proto_worker_usage *used);

/* Frees a client of which nothing is in flight and which the submitter has left. */
void control_client_drop(struct worker *worker, struct client *client);

/*
 * Stops the submitter and frees all clients once the device is done with them.
 * False if that takes longer than a second: then nothing may be freed.
 */
bool control_client_drop_all(struct worker *worker);

#endif
