/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_client: the messages about a client that is attached: move its window, link it with
 * another device's client, take memory for its rings, report its use, detach. Control thread.
 * Functions that take a request return 0, or -errno if no answer can be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CLIENT_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CLIENT_H

#include "server/worker/control/request.h"

int control_client_window(struct request *request);
int control_client_link(struct request *request);
int control_client_rings(struct request *request);
int control_client_usage(struct request *request);
/* control_progress answers a detach when nothing of the client is left. */
int control_client_detach(struct request *request);

/* To be called while a client is LEFT and quiet, and no call of it waits. First its device memory
 * is given back, which the supervisor is told (worker_released). Then its modules and registrations
 * are, in a quiet window; it is freed after that, and the detach answered. */
void control_client_leave(struct worker *worker, struct client *client);

/*
 * Ends the loaders, the submitter and, once the device is done with all clients, the completer.
 * Returns false if the device takes longer than a second or the context is lost: nothing may be
 * freed then. A thread may be in a call of the driver that waits for a kernel, and is waited for.
 */
bool control_client_drain(struct worker *worker);

/* Frees all clients. To be called after control_client_drain. */
void control_client_drop_all(struct worker *worker);

#endif
