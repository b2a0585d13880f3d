/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_retire: gives up what a client asked to be freed, once the device is done with
 * it (retire.h says when).
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_RETIRE_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_RETIRE_H

#include "server/worker/control/request.h"

/* Control thread: carries out the frees whose work is done and answers them. 0, or -errno if an
 * answer can't be sent. */
int control_retire_finish(struct worker *worker, struct client *client);

/* Of what was asked to be freed: answered at once if nothing is in flight, else by
 * control_progress. asked NULL: there was no memory for that, and it is refused. */
int control_retire_answer(const struct request *request, const struct retirement *asked);

#endif
