/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * socket_file: the file of a listening Unix socket that this server made. A server
 * that was killed leaves its file behind; it is replaced if nobody listens there.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SOCKET_FILE_H
#define GPUSHARE_SERVER_SUPERVISOR_SOCKET_FILE_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct socket_file {
    char path[sizeof((struct sockaddr_un){0}.sun_path)]; /* "": none */
    dev_t device; /* which file it is, so that nobody else's is removed */
    ino_t inode;
};

#define SOCKET_FILE_NONE ((struct socket_file){.path = ""})

/*
 * Binds a new non-blocking socket of this type (SOCK_STREAM, SOCK_SEQPACKET) to path.
 * Nobody can connect before the caller's listen(), so its mode can still be set.
 * Returns the socket, the caller's; or -errno, and then there is no file:
 * -ENAMETOOLONG; -EADDRINUSE another server listens there, or it is no socket.
 */
int socket_file_bind(struct socket_file *file, int type, const char *path);

/* Removes the file if it is still the one that was made. Idempotent. */
void socket_file_remove(struct socket_file *file);

#endif
