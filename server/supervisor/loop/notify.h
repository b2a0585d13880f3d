/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * notify: systemd's two small interfaces, in our own few lines: telling it how the
 * service is (sd_notify(3)), and taking the sockets that it opened (sd_listen_fds(3)).
 *
 * The environment's values are arguments: settings reads the environment. Any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_NOTIFY_H
#define GPUSHARE_SERVER_SUPERVISOR_NOTIFY_H

#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

struct notify {
    int fd; /* a connected datagram socket; -1: nobody listens, and every call does nothing */
};

#define NOTIFY_NONE ((struct notify){.fd = -1})

/*
 * Connects to NOTIFY_SOCKET's value: an absolute path, or '@' and an abstract name.
 * NULL or "": nobody listens, which is no error. Returns 0; -EINVAL neither of the
 * two forms; or another -errno.
 */
int notify_open(struct notify *notify, const char *notify_socket);

/* Idempotent. */
void notify_close(struct notify *notify);

/*
 * Each sends one datagram; never blocks. Returns 0 (also where nobody listens), or
 * -errno, which callers may ignore: systemd notices a missing READY=1 by itself.
 */
int notify_ready(const struct notify *notify);
int notify_stopping(const struct notify *notify);

/* STATUS=: one line for `systemctl status`; control characters become '?', and it is cut at 400
 * bytes. */
int notify_status(const struct notify *notify, const char *text);

/* The sockets that systemd passed; -1 where it passed none. */
struct notify_sockets {
    int client; /* SOCK_SEQPACKET, listening */
    int admin;  /* SOCK_STREAM, listening */
};

/*
 * Takes descriptors 3 and up as LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES describe
 * them; they get close-on-exec and are the caller's. Names are "client" and "admin"; where
 * there are no names the sockets' types tell. No variables, or another process's pid: none
 * was passed. Returns 0; or an error number that *why explains: a malformed variable, an
 * unknown name, a socket of the wrong kind or not listening, one kind twice.
 */
uint32_t notify_take_sockets(struct notify_sockets *sockets, const char *listen_pid,
                             const char *listen_fds, const char *listen_fdnames, pid_t self,
                             struct error *why);

#endif
