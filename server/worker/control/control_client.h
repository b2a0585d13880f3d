/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_client: the messages about a client that is attached: move its window, link it with
 * another device's client, report its use, detach. Control thread. Functions that take a request
 * return 0, or -errno if no answer can be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CLIENT_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_CLIENT_H

#include "server/worker/control/request.h"

int control_client_window(struct request *request);
int control_client_link(struct request *request);
int control_client_usage(struct request *request);
/* control_progress answers a detach when nothing of the client is left. */
int control_client_detach(struct request *request);

/* The end of a client of which the driver knows no module and no host memory any more
 * (control_quiet.h): gives the rest back, frees it and answers the detach. */
int control_client_end(struct worker *worker, struct client *client, struct retirement *request);

/*
 * Ends the loaders, the submitter and, once the device is done with all clients, the completer;
 * then frees all clients. Returns false if that takes longer than a second or the context is lost:
 * nothing may be freed then.
 */
bool control_client_drop_all(struct worker *worker);

#endif
