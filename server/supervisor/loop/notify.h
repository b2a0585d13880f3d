/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * notify: two small interfaces of systemd: telling it the state of the service (sd_notify(3)), and
 * taking the sockets that it opened (sd_listen_fds(3)).
 *
 * The environment's values are arguments, since only settings reads the environment. One thread,
 * that of the loop.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_NOTIFY_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_NOTIFY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/error.h"
#include "common/list.h"

struct notify {
    int fd; /* a connected datagram socket; -1: nobody listens, and every call does nothing */
    struct queue waiting; /* datagrams that the manager has no room for yet */
    unsigned stores;      /* of these, those with a descriptor */
    uint64_t full_since;  /* the socket takes nothing since then; 0: it does */
    int full, failed;     /* -errno: why it takes nothing; why it never will take a descriptor */
    uv_timer_t timer;     /* data NULL: notify_watch was not called */
    uv_timer_t watchdog;  /* data NULL: the manager has none, or nobody feeds it yet */
};

#define NOTIFY_NONE ((struct notify){.fd = -1})

/*
 * Connects to the value of NOTIFY_SOCKET: an absolute path, or '@' and an abstract name. NULL or
 * "": nobody listens, which is no error. Returns 0; -EINVAL if the value has neither form; or
 * another -errno.
 */
int notify_open(struct notify *notify, const char *notify_socket);

/* Closes the socket; what waits is lost. Idempotent. */
void notify_close(struct notify *notify);

/*
 * The time within which the manager wants to hear of the service again and again, as WATCHDOG_USEC
 * says: *limit_us in microseconds, 0 for none. pid: WATCHDOG_PID, NULL for any process; of another
 * process than self there is none. Returns 0, or an error number that *why explains: a malformed
 * variable.
 */
uint32_t notify_read_watchdog(const char *usec, const char *pid, pid_t self, uint64_t *limit_us,
                              struct error *why);

/*
 * The loop feeds that watchdog from now on until notify_unwatch, four times within the limit. It is
 * the loop alone that does: if the loop hangs, the manager replaces the server. Workers are watched
 * by the server itself, by their heartbeat, and long kernels are nobody's fault. limit_us: 0: the
 * manager has none.
 */
void notify_feed(struct notify *notify, uv_loop_t *loop, uint64_t limit_us);

/* The loop sends what waits, from now on until notify_unwatch. Without a loop, other calls do. */
void notify_watch(struct notify *notify, uv_loop_t *loop);
/* To be called while the loop runs or is yet to run. Idempotent. */
void notify_unwatch(struct notify *notify);

/* For the end of the process, when there is no loop: waits until everything is sent, for a second
 * at most. */
void notify_drain(struct notify *notify);

/*
 * Each of the next three calls sends one datagram, and never blocks. Returns 0, also where nobody
 * listens, or -errno. The first two wait in a queue while the manager has no room, since one that
 * missed READY=1 would end a server that serves; the third is refused with -EAGAIN.
 */
int notify_ready(struct notify *notify);
int notify_stopping(struct notify *notify);

/* Sends STATUS=, one line for `systemctl status`. Control characters become '?', and text beyond
 * 400 bytes is cut. */
int notify_status(struct notify *notify, const char *text);

/*
 * Has the service manager keep a descriptor under this name, or drop what it keeps under a name.
 * It polls none of them, so that a peer's hanging up does not make it drop one. Never blocks; waits
 * in the queue, behind earlier ones, while the manager's is full. Returns 0 or -errno; -ENOTCONN
 * where nobody listens.
 */
int notify_store(struct notify *notify, const char *name, int fd);
int notify_unstore(struct notify *notify, const char *name);

enum { STORE_WAITS = 1 };

/*
 * Sends what waits, and says how it is with the descriptors that are to be stored. Returns 0: it
 * has all of them; STORE_WAITS; or -errno: one can't be sent, or the manager has taken nothing for
 * a second.
 */
int notify_stored(struct notify *notify);

/* Drops the descriptors that wait. */
void notify_forget_stores(struct notify *notify);

/* A descriptor that the service manager kept. */
struct notify_kept {
    char name[16];
    int fd;
};

/* The sockets that systemd passed, which the caller owns; -1 where it passed none. */
struct notify_sockets {
    int client;               /* SOCK_SEQPACKET, listening */
    int admin;                /* SOCK_STREAM, listening */
    struct notify_kept *kept; /* the rest, with other names: from malloc, the caller's */
    size_t kept_count;
};

/*
 * Takes descriptors 3 and up, as LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES describe them, and makes
 * them close-on-exec. The sockets' names are "client" and "admin"; without names, their types tell.
 * Descriptors of keep/keeper.h have names with a "." in them.
 *
 * If the variables are NULL or are for another process than self, nothing was passed. Returns 0; or
 * an error number that *why explains: a malformed variable, an unknown name, a socket of the wrong
 * kind or not listening, or two of one kind.
 */
uint32_t notify_take_sockets(struct notify_sockets *sockets, const char *listen_pid,
                             const char *listen_fds, const char *listen_fdnames, pid_t self,
                             struct error *why);

#endif
