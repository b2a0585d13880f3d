/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_socket: the administrators' listening socket and its file. The file has mode 0660, and
 * group gpushare where the system has that group and we may give the file to it. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_SOCKET_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_SOCKET_H

#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"
#include "server/supervisor/loop/socket_file.h"

struct admin_socket {
    int fd;                  /* non-blocking; belongs to the caller of admin_socket_open */
    struct socket_file file; /* none if systemd made the socket */
};

/*
 * fd >= 0: takes a listening socket that was passed. Otherwise makes one at path, and replaces a
 * socket file on which nobody listens any more; connecting is refused until the caller listens.
 * Returns 0, or an error number that *why explains.
 */
uint32_t admin_socket_open(struct admin_socket *admin_socket, const char *path, int fd,
                           struct error *why);

/*
 * Sends the beginning of an answer on a connection, with a copy of the descriptor `passed`, without
 * waiting. Returns the number of bytes sent, at least 1, or -errno.
 */
ssize_t admin_socket_pass(int connection, const char *bytes, size_t length, int passed);

/* Removes the file if it is still the one that was made. Leaves fd open. Idempotent. */
void admin_socket_remove(struct admin_socket *admin_socket);

#endif
