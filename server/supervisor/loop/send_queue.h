/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * send_queue: sends messages to a peer that may not read, without ever waiting.
 *
 * If the socket does not take a message at once, the message is copied, its descriptors are
 * duplicated, and it is sent when the socket has room. The queue is bounded: a peer that lets it
 * run full loses its connection. A queue with a hold keeps every message until the hold is
 * released. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_SEND_QUEUE_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_SEND_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ipc/channel.h"
#include "common/list.h"

/* Bytes that a waiting descriptor counts as: descriptors are scarcer than memory. */
#define SEND_QUEUE_FD_BYTES 8192

/* Queues whose messages wait for send_hold_release. All zero: none. */
struct send_hold {
    struct queue queues;
};

struct send_queue {
    int fd;                 /* borrowed; non-blocking */
    struct queue messages;  /* that wait */
    size_t bytes;           /* waiting; each descriptor counts as SEND_QUEUE_FD_BYTES */
    size_t max;             /* maximum of bytes */
    unsigned fds;           /* descriptors among them, which are this process's own */
    struct send_hold *hold; /* the owner's, set after opening; NULL: messages wait for nothing */
    struct queue_link hold_link;
    bool held;   /* it is in `hold` */
    bool narrow; /* the socket's buffer is smaller than a large message */
};

enum { SEND_QUEUE_QUEUED = 1 };

/* Makes an empty queue for a socket, which stays the caller's. max: bytes that may wait. */
void send_queue_open(struct send_queue *queue, int fd, size_t max);

/*
 * The socket takes as little as the kernel allows, a few small messages or one large one, before
 * its peer has read. Descriptors that no peer has received count against the sender's user, and all
 * its sockets fail once they are more than RLIMIT_NOFILE: so no peer may keep many. Returns 0 or
 * -errno.
 */
int send_queue_narrow(struct send_queue *queue);

/* The socket takes one more message, whatever it holds: the peer's last. */
void send_queue_widen(struct send_queue *queue);

/* Drops the messages that wait. Idempotent. */
void send_queue_close(struct send_queue *queue);

/*
 * Sends one message, as channel_send does. Returns 0 if it was sent;
 * SEND_QUEUE_QUEUED if it waits, and the caller polls for writability; -ENOBUFS if the queue is
 * full; or another -errno.
 */
int send_queue_send(struct send_queue *queue, const struct channel_packet *packet);

/* Sends messages that wait, but for those that are held. Returns 0 if none waits any more;
 * SEND_QUEUE_QUEUED; or -errno. */
int send_queue_flush(struct send_queue *queue);

/* Messages of all queues of this hold may be sent from now on, and are, as far as their sockets
 * take them. An error shows at the next send_queue_flush. */
void send_hold_release(struct send_hold *hold);

/* Calls see with each message that waits, the oldest first. */
void send_queue_each(const struct send_queue *queue,
                     void (*see)(void *context, const struct channel_packet *packet,
                                 size_t body_bytes),
                     void *context);

static inline bool send_queue_waiting(const struct send_queue *queue)
{
    return !queue_is_empty(&queue->messages);
}

#endif
