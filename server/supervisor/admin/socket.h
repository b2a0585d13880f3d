/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_socket: the listening socket of the administrators and its file: mode 0660,
 * group gpushare where the system has one and we may give the file to it.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_SOCKET_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_SOCKET_H

#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"
#include "server/supervisor/loop/socket_file.h"

struct admin_socket {
    int fd;                  /* non-blocking; the caller's from the start */
    struct socket_file file; /* none where systemd made it */
};

/*
 * fd >= 0: takes a listening socket that was passed. Otherwise makes one at path,
 * replacing a socket file on which nobody listens any more. The socket is not yet
 * listening: connects are refused until it is. Returns 0, or -errno with one sentence
 * in why.
 */
uint32_t admin_socket_open(struct admin_socket *admin_socket, const char *path, int fd,
                           struct error *why);

/*
 * Sends the beginning of an answer on a connection, with a copy of a descriptor, without
 * waiting. Returns how many bytes were sent, at least one, or -errno.
 */
ssize_t admin_socket_pass(int connection, const char *bytes, size_t length, int passed);

/* Removes the file if it is still the one that was made. Idempotent; leaves fd alone. */
void admin_socket_remove(struct admin_socket *admin_socket);

#endif
