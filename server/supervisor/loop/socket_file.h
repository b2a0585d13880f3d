/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * socket_file: the file of a listening Unix socket that this server made. A server that was killed
 * leaves its file behind; the file is replaced if nobody listens on it. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_SOCKET_FILE_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_SOCKET_FILE_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct socket_file {
    char path[sizeof((struct sockaddr_un){0}.sun_path)]; /* "": no file */
    dev_t device; /* device and inode identify the file, so that no other one is removed */
    ino_t inode;
};

#define SOCKET_FILE_NONE ((struct socket_file){.path = ""})

/*
 * Binds a new non-blocking socket of this type (SOCK_STREAM or SOCK_SEQPACKET) to path. Nobody can
 * connect before the caller's listen(), so the caller can still set the file's mode. Returns the
 * socket, which the caller owns. Otherwise returns -errno and leaves no file: -ENAMETOOLONG;
 * -EADDRINUSE if another server listens there or the path is no socket; or another one.
 */
int socket_file_bind(struct socket_file *file, int type, const char *path);

/* Removes the file if it is still the one that socket_file_bind made. Idempotent. */
void socket_file_remove(struct socket_file *file);

#endif
