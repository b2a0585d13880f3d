/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/send_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/ipc/channel.h"

struct send_queue_message {
    struct send_queue_message *next;
    uint64_t serial;
    uint32_t client;
    uint16_t opcode;
    uint16_t fd_count;
    uint32_t body_bytes, tail_bytes;
    int fds[PROTO_FDS_MAX];
    uint8_t data[];
};

/* Whether the socket was full: the peer will read again, or its connection will end. */
static bool is_full(int result)
{
    return result == -EAGAIN || result == -ENOBUFS || result == -ENOMEM;
}

void send_queue_open(struct send_queue *queue, int fd, size_t max)
{
    *queue = (struct send_queue){.fd = fd, .max = max};
}

static void message_free(struct send_queue_message *message)
{
    for (unsigned i = 0; i < message->fd_count; i++)
        close(message->fds[i]);
    free(message);
}

static size_t message_bytes(const struct send_queue_message *message)
{
    return sizeof *message + message->body_bytes + message->tail_bytes;
}

static size_t message_cost(const struct send_queue_message *message)
{
    return message_bytes(message) + (size_t)message->fd_count * SEND_QUEUE_FD_BYTES;
}

static void send_queue_shift(struct send_queue *queue)
{
    struct send_queue_message *message = queue->first;
    queue->first = message->next;
    if (!queue->first)
        queue->last = NULL;
    queue->bytes -= message_cost(message);
    message_free(message);
}

void send_queue_close(struct send_queue *queue)
{
    while (queue->first)
        send_queue_shift(queue);
    queue->fd = -1;
}

static int message_queue(struct send_queue *queue, const struct send_queue_message *shape,
                         const void *body, const void *tail, const int *fds)
{
    size_t cost = message_cost(shape);
    if (cost > queue->max - queue->bytes)
        return -ENOBUFS;
    struct send_queue_message *message = malloc(message_bytes(shape));
    if (!message)
        return -ENOMEM;
    *message = *shape;
    message->next = NULL;
    if (shape->body_bytes)
        memcpy(message->data, body, shape->body_bytes);
    if (shape->tail_bytes)
        memcpy(message->data + shape->body_bytes, tail, shape->tail_bytes);
    unsigned wanted = shape->fd_count;
    for (message->fd_count = 0; message->fd_count < wanted; message->fd_count++) {
        int fd = fcntl(fds[message->fd_count], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            int saved = errno;
            message_free(message);
            return -saved;
        }
        message->fds[message->fd_count] = fd;
    }
    if (queue->last)
        queue->last->next = message;
    else
        queue->first = message;
    queue->last = message;
    queue->bytes += cost;
    return SEND_QUEUE_QUEUED;
}

int send_queue_send(struct send_queue *queue, uint16_t opcode, uint64_t serial, uint32_t client,
                    const void *body, const void *tail, size_t tail_bytes, const int *fds,
                    unsigned fd_count)
{
    const struct proto_message *type = proto_message_find(opcode);
    if (!type || fd_count != type->fds || tail_bytes > type->tail)
        return -EINVAL;
    if (!queue->first) {
        int result =
            channel_send(queue->fd, opcode, serial, client, body, tail, tail_bytes, fds, fd_count);
        if (!is_full(result))
            return result;
    }
    struct send_queue_message shape = {.serial = serial,
                                       .client = client,
                                       .opcode = opcode,
                                       .fd_count = (uint16_t)fd_count,
                                       .body_bytes = type->bytes,
                                       .tail_bytes = (uint32_t)tail_bytes};
    return message_queue(queue, &shape, body, tail, fds);
}

int send_queue_flush(struct send_queue *queue)
{
    while (queue->first) {
        struct send_queue_message *message = queue->first;
        int result = channel_send(queue->fd, message->opcode, message->serial, message->client,
                                  message->data, message->data + message->body_bytes,
                                  message->tail_bytes, message->fds, message->fd_count);
        /* -ETOOMANYREFS: too many descriptors of this user are on their way in sockets. That
         * passes, and a message that was accepted has to be sent. */
        if (is_full(result) || result == -ETOOMANYREFS)
            return SEND_QUEUE_QUEUED;
        if (result < 0)
            return result;
        send_queue_shift(queue);
    }
    return 0;
}
