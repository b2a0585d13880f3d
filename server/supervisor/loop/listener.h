/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * listener: the clients' socket (SOCK_SEQPACKET), our own or systemd's.
 *
 * Without a free file descriptor a connection can be neither accepted nor left in the queue, for
 * the loop would spin on it. So the listener keeps a spare descriptor. It closes the spare, accepts
 * the connection, closes that, and opens the spare again. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_LISTENER_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_LISTENER_H

#include <stddef.h>

#include <uv.h>

#include "common/error.h"

struct listener;

struct listener_options {
    int fd;           /* a listening socket that was passed, which is taken over; -1: none */
    const char *path; /* else of the socket that is made */
    /* Gets each connection's descriptor, close-on-exec, and owns it; it may close the listener. */
    void (*accepted)(void *context, int fd);
    void *context;
};

/*
 * Listens for clients. A socket that is made is open to every user; its folder is made if it is
 * missing, and a socket file on which nobody listens is replaced. Returns 0, or an error number
 * that *why explains.
 */
uint32_t listener_open(struct listener **listener, uv_loop_t *loop,
                       const struct listener_options *options, struct error *why);

/* Stops listening and removes the socket file that the listener made. The loop frees the listener;
 * *listener becomes NULL. *listener may be NULL. */
void listener_close(struct listener **listener);

#endif
