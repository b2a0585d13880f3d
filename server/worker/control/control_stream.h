/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_stream: the messages about a client's streams and events. Control thread. Each function
 * returns 0, or -errno if no answer can be sent.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_STREAM_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_STREAM_H

#include "server/worker/control/request.h"

int control_stream_create(struct request *request);
int control_stream_destroy(struct request *request);
int control_stream_recover(struct request *request);
int control_event_create(struct request *request);
int control_event_destroy(struct request *request);
int control_event_elapsed(struct request *request);

/* Frees closed streams whose work is done, and tells the supervisor of each. Takes the client's
 * lock. */
int control_stream_finish(struct worker *worker, struct client *client);

#endif
