/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * waiting: waits until GPUs that are drained have no clients any more, and says meanwhile which
 * clients there are. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_WAITING_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_WAITING_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "client/tools/admin_client.h"

/*
 * answer: to "drain"; the numbers of clients in it become what they are at the end. progress: where
 * a line is written whenever the clients have changed; NULL: nowhere. Returns ADMIN_OK when the
 * last one has gone; otherwise *failure says why the wait is over, which the caller owns (NULL
 * without memory): a GPU was resumed meanwhile, limit_ns are over (0: no limit), or the server does
 * not answer.
 */
enum admin_outcome waiting_run(const char *socket, json_t *answer, uint64_t limit_ns,
                               FILE *progress, json_t **failure);

#endif
