/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * closer: closes descriptors that clients have sent, on threads of its own.
 *
 * Closing the last descriptor of a file may sleep in the kernel for as long as the file's maker
 * likes: a socket that lingers, a file of FUSE or NFS, a terminal. The loop must not sleep, and the
 * pool of libuv has too few threads to lose one.
 *
 * A thread is started when a descriptor comes and no thread is idle, up to a bound; beyond the
 * bound descriptors wait. No user has more than a quarter of these threads, and a close that sleeps
 * is interrupted, which ends most of such sleeps.
 *
 * Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_CLOSER_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_CLOSER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/ipc/channel.h"

struct closer;

/* The sender of a descriptor. */
struct closer_sender {
    uint32_t client; /* its number, for the log; 0 if it has none */
    uid_t uid;
};

/* The server itself, with memory that takes long to give back. */
#define CLOSER_SERVER ((struct closer_sender){.uid = (uid_t)-1})

/* Makes a closer without threads. numbers: no descriptor has this number or a greater one, for the
 * process may not have so many. waiting_max: how many descriptors may wait, of which one user may
 * have three quarters. Returns 0 or -errno, with *closer NULL. */
int closer_open(struct closer **closer, unsigned numbers, unsigned waiting_max);

/*
 * Ends the threads once they have closed what waits. A close that sleeps for longer than a second
 * is not waited for: its thread goes on by itself, and the end of the process ends it. *closer
 * becomes NULL; it may be NULL before.
 */
void closer_close(struct closer **closer);

/*
 * Takes a descriptor over and closes it soon, without memory for it. A negative descriptor is
 * ignored.
 *
 * Returns false if too many descriptors wait already. The descriptor is taken over in this case
 * too, but the caller should take no more from this sender.
 */
bool closer_take(struct closer *closer, int fd, struct closer_sender sender);

/* Takes over every descriptor that the message still holds. Returns as closer_take does. */
bool closer_take_message(struct closer *closer, struct channel_message *message,
                         struct closer_sender sender);

/*
 * Shuts the receiving side of a Unix socket, reads the messages that lie unread in it, and takes
 * over the descriptors in them. The sending side stays open, and the socket stays the caller's.
 * with_fds: whether to read messages that have descriptors; otherwise it stops at the first one,
 * and all descriptors go with the socket, which takes one number. Returns whether the socket is
 * empty: then nothing can make its close sleep.
 */
bool closer_drain(struct closer *closer, int socket, bool with_fds, struct closer_sender sender);

/* Drains a socket and closes it; takes it over if it can't be emptied. A thread reads the rest
 * then, without receiving descriptors, so that the other side can still read what it was told. */
void closer_hang_up(struct closer *closer, int socket, bool with_fds, struct closer_sender sender);

#endif
