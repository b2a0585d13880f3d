/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/send_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct send_queue_message {
    struct queue_link link;
    struct channel_packet packet; /* of what stands below */
    size_t body_bytes;
    bool held;
    int fds[PROTO_FDS_MAX];
    uint8_t data[]; /* the body, then the tail */
};

/* Whether the socket was full: the peer will read again, or its connection will end. */
static bool is_full(int result)
{
    return result == -EAGAIN || result == -ENOBUFS || result == -ENOMEM;
}

/* The kernel doubles both, and raises the first to the least that it allows. */
enum { NARROW_BYTES = 1, WIDE_BYTES = PROTO_MESSAGE_MAX };

static int socket_room(int fd, int bytes)
{
    return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) < 0 ? -errno : 0;
}

void send_queue_open(struct send_queue *queue, int fd, size_t max)
{
    *queue = (struct send_queue){.fd = fd, .max = max};
}

int send_queue_narrow(struct send_queue *queue)
{
    queue->narrow = true;
    return socket_room(queue->fd, NARROW_BYTES);
}

void send_queue_widen(struct send_queue *queue)
{
    if (queue->narrow)
        socket_room(queue->fd, WIDE_BYTES);
}

/* A message that is larger than the socket's buffer needs a larger one, for the moment. */
static int packet_send(const struct send_queue *queue, const struct channel_packet *packet)
{
    int result = channel_send(queue->fd, packet);
    if (result != -EMSGSIZE || !queue->narrow)
        return result;
    result = socket_room(queue->fd, WIDE_BYTES);
    if (result == 0)
        result = channel_send(queue->fd, packet);
    socket_room(queue->fd, NARROW_BYTES);
    return result;
}

static void message_free(struct send_queue_message *message)
{
    for (unsigned i = 0; i < message->packet.fd_count; i++)
        close(message->fds[i]);
    free(message);
}

static size_t message_bytes(size_t body_bytes, const struct channel_packet *packet)
{
    return sizeof(struct send_queue_message) + body_bytes + packet->tail_bytes;
}

/* The bytes that a waiting message counts as. */
static size_t message_cost(size_t body_bytes, const struct channel_packet *packet)
{
    return message_bytes(body_bytes, packet) + (size_t)packet->fd_count * SEND_QUEUE_FD_BYTES;
}

static void send_queue_shift(struct send_queue *queue)
{
    struct send_queue_message *message =
        QUEUE_TAKE(&queue->messages, struct send_queue_message, link);
    queue->bytes -= message_cost(message->body_bytes, &message->packet);
    queue->fds -= message->packet.fd_count;
    message_free(message);
}

/* Takes a queue out of its hold's list. */
static void hold_leave(struct send_queue *queue)
{
    if (queue->held)
        queue_remove(&queue->hold->queues, &queue->hold_link);
    queue->held = false;
}

void send_queue_close(struct send_queue *queue)
{
    hold_leave(queue);
    while (send_queue_waiting(queue))
        send_queue_shift(queue);
    queue->fd = -1;
}

/* A copy of 0, 1 or 2, where standard streams are closed, would get what the log writes. */
static int fds_copy(struct send_queue_message *message, const struct channel_packet *packet)
{
    message->packet.fds = message->fds;
    for (unsigned *i = &message->packet.fd_count; *i < packet->fd_count; (*i)++) {
        message->fds[*i] = fcntl(packet->fds[*i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (message->fds[*i] < 0)
            return -errno;
    }
    return 0;
}

static int message_queue(struct send_queue *queue, size_t body_bytes,
                         const struct channel_packet *packet)
{
    size_t cost = message_cost(body_bytes, packet);
    if (cost > queue->max - queue->bytes)
        return -ENOBUFS;
    struct send_queue_message *message = malloc(message_bytes(body_bytes, packet));
    if (!message)
        return -ENOMEM;
    *message = (struct send_queue_message){.packet = *packet, .body_bytes = body_bytes};
    message->packet.body = message->data;
    message->packet.tail = message->data + body_bytes;
    message->packet.fd_count = 0;
    if (body_bytes)
        memcpy(message->data, packet->body, body_bytes);
    if (packet->tail_bytes)
        memcpy(message->data + body_bytes, packet->tail, packet->tail_bytes);
    int result = fds_copy(message, packet);
    if (result < 0) {
        message_free(message);
        return result;
    }
    queue_append(&queue->messages, &message->link);
    queue->bytes += cost;
    queue->fds += packet->fd_count;
    message->held = queue->hold != NULL;
    if (queue->hold && !queue->held) {
        queue_prepend(&queue->hold->queues, &queue->hold_link);
        queue->held = true;
    }
    return SEND_QUEUE_QUEUED;
}

int send_queue_send(struct send_queue *queue, const struct channel_packet *packet)
{
    const struct proto_message *type = proto_message_find(packet->opcode);
    if (!type || packet->fd_count != type->fds || packet->tail_bytes > type->tail)
        return -EINVAL;
    if (!send_queue_waiting(queue) && !queue->hold) {
        int result = packet_send(queue, packet);
        if (!is_full(result))
            return result;
    }
    return message_queue(queue, type->bytes, packet);
}

int send_queue_flush(struct send_queue *queue)
{
    const struct send_queue_message *first;
    while ((first = QUEUE_FIRST(&queue->messages, struct send_queue_message, link)) &&
           !first->held) {
        int result = packet_send(queue, &first->packet);
        /* -ETOOMANYREFS: too many descriptors of this user are on their way in sockets. That
         * passes, and a message that was accepted has to be sent. */
        if (is_full(result) || result == -ETOOMANYREFS)
            return SEND_QUEUE_QUEUED;
        if (result < 0)
            return result;
        send_queue_shift(queue);
    }
    return first ? SEND_QUEUE_QUEUED : 0;
}

void send_hold_release(struct send_hold *hold)
{
    struct send_queue *queue;
    while ((queue = QUEUE_TAKE(&hold->queues, struct send_queue, hold_link))) {
        struct send_queue_message *at;
        queue->held = false;
        QUEUE_FOR_EACH (at, &queue->messages, link)
            at->held = false;
        send_queue_flush(queue);
    }
}

void send_queue_each(const struct send_queue *queue,
                     void (*see)(void *context, const struct channel_packet *packet,
                                 size_t body_bytes),
                     void *context)
{
    const struct send_queue_message *at;
    QUEUE_FOR_EACH (at, &queue->messages, link)
        see(context, &at->packet, at->body_bytes);
}
