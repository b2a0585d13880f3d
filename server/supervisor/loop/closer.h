/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * closer: closes descriptors that clients have sent, on threads of its own.
 *
 * Closing the last descriptor of a file may sleep in the kernel for as long as the file's maker
 * likes: a socket that lingers, a file of FUSE or NFS, a terminal. The loop must not sleep, and the
 * pool of libuv has too few threads to lose one. A thread is started when a descriptor comes and
 * no thread is idle, up to a bound; beyond the bound descriptors wait.
 *
 * Loop thread, except where a function says otherwise.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_CLOSER_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_CLOSER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/channel.h"

struct closer;

/* Makes a closer without threads. Returns 0 or -errno, with *closer NULL. */
int closer_open(struct closer **closer);

/*
 * Ends the threads once they have closed what waits. A close that sleeps for longer than a second
 * is not waited for: its thread goes on by itself, and the end of the process ends it. *closer
 * becomes NULL; it may be NULL before.
 */
void closer_close(struct closer **closer);

/*
 * Takes a descriptor over and closes it soon. client: the number of the client that sent it, for
 * the log; 0 if it has none yet. A negative descriptor is ignored.
 *
 * Returns false if too many descriptors wait already. The descriptor is taken over in this case
 * too, but the caller should take no more from this client.
 */
bool closer_take(struct closer *closer, int fd, uint32_t client);

/* Takes over every descriptor that the message still holds. Returns as closer_take does. */
bool closer_take_message(struct closer *closer, struct channel_message *message, uint32_t client);

/*
 * Shuts the receiving side of a Unix socket, reads the messages that lie unread in it, and takes
 * over the descriptors in them. The sending side stays open, and the socket stays the caller's.
 * Returns whether the socket is empty: then nothing can make its close sleep.
 */
bool closer_drain(struct closer *closer, int socket, uint32_t client);

/* Drains a socket and closes it; takes it over if it can't be emptied. */
void closer_hang_up(struct closer *closer, int socket, uint32_t client);

#endif
