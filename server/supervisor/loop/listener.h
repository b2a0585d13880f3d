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

/*
 * Listens for clients. fd >= 0: a listening socket that was passed, which is taken over. Otherwise
 * makes one at path, open to every user, and its folder if that is missing; replaces a socket file
 * on which nobody listens. accepted gets each connection's descriptor, close-on-exec, and owns it;
 * it may close the listener. Returns 0, or an error number that *why explains.
 */
uint32_t listener_open(struct listener **listener, uv_loop_t *loop, const char *path, int fd,
                       void (*accepted)(void *context, int fd), void *context, struct error *why);

/* Stops listening and removes the socket file that the listener made. The loop frees the listener;
 * *listener becomes NULL. *listener may be NULL. */
void listener_close(struct listener **listener);

#endif
