/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * refusal: the answer of a server that can't start to those who wait at the sockets that systemd
 * passed. systemd starts a server for each connection that waits. One that ended without taking
 * it would be started again at once, until systemd gives up, and closes the sockets for good.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_REFUSAL_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_REFUSAL_H

#include <stdbool.h>

#include "protocol.h"

struct refusal {
    int client_fd, admin_fd;  /* listening sockets, the caller's; -1: none */
    struct proto_ended ended; /* for each client */
    const char *answer;       /* for each administrator: a line */
    bool lasts;               /* goes on though nobody waits */
};

/* Answers those who wait now. If there is one, or if it lasts, it goes on for so many milliseconds,
 * so that starts that fail do not follow one another faster. A signal's handler ends it early.
 * Blocks the calling thread. */
void refusal_give(const struct refusal *refusal, unsigned ms);

#endif
