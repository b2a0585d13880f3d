/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/channel.h"

struct outbox_letter {
    struct outbox_letter *next;
    uint32_t serial, client;
    uint16_t opcode;
    uint16_t fd_count;
    uint32_t body_bytes, tail_bytes;
    int fds[PROTO_FDS_MAX];
    uint8_t data[];
};

/* Results of a full socket: the peer reads again some time, or its connection ends. */
static bool later(int result)
{
    return result == -EAGAIN || result == -ENOBUFS || result == -ENOMEM;
}

void outbox_open(struct outbox *outbox, int fd, size_t most)
{
    *outbox = (struct outbox){.fd = fd, .most = most};
}

static void letter_free(struct outbox_letter *letter)
{
    for (unsigned i = 0; i < letter->fd_count; i++)
        close(letter->fds[i]);
    free(letter);
}

static size_t letter_bytes(const struct outbox_letter *letter)
{
    return sizeof *letter + letter->body_bytes + letter->tail_bytes;
}

static size_t letter_cost(const struct outbox_letter *letter)
{
    return letter_bytes(letter) + (size_t)letter->fd_count * OUTBOX_FD_BYTES;
}

static void outbox_shift(struct outbox *outbox)
{
    struct outbox_letter *letter = outbox->first;
    outbox->first = letter->next;
    if (!outbox->first)
        outbox->last = NULL;
    outbox->bytes -= letter_cost(letter);
    letter_free(letter);
}

void outbox_close(struct outbox *outbox)
{
    while (outbox->first)
        outbox_shift(outbox);
    outbox->fd = -1;
}

static int enqueue(struct outbox *outbox, const struct outbox_letter *shape, const void *body,
                   const void *tail, const int *fds)
{
    size_t cost = letter_cost(shape);
    if (cost > outbox->most - outbox->bytes)
        return -ENOBUFS;
    struct outbox_letter *letter = malloc(letter_bytes(shape));
    if (!letter)
        return -ENOMEM;
    *letter = *shape;
    letter->next = NULL;
    if (shape->body_bytes)
        memcpy(letter->data, body, shape->body_bytes);
    if (shape->tail_bytes)
        memcpy(letter->data + shape->body_bytes, tail, shape->tail_bytes);
    unsigned wanted = shape->fd_count;
    for (letter->fd_count = 0; letter->fd_count < wanted; letter->fd_count++) {
        int fd = fcntl(fds[letter->fd_count], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            int saved = errno;
            letter_free(letter);
            return -saved;
        }
        letter->fds[letter->fd_count] = fd;
    }
    if (outbox->last)
        outbox->last->next = letter;
    else
        outbox->first = letter;
    outbox->last = letter;
    outbox->bytes += cost;
    return OUTBOX_QUEUED;
}

int outbox_send(struct outbox *outbox, uint16_t opcode, uint32_t serial, uint32_t client,
                const void *body, const void *tail, size_t tail_bytes, const int *fds,
                unsigned fd_count)
{
    const struct proto_message *type = proto_message_find(opcode);
    if (!type || fd_count != type->fds || tail_bytes > type->tail)
        return -EINVAL;
    if (!outbox->first) {
        int result =
            channel_send(outbox->fd, opcode, serial, client, body, tail, tail_bytes, fds, fd_count);
        if (!later(result))
            return result;
    }
    struct outbox_letter shape = {.serial = serial,
                                  .client = client,
                                  .opcode = opcode,
                                  .fd_count = (uint16_t)fd_count,
                                  .body_bytes = type->bytes,
                                  .tail_bytes = (uint32_t)tail_bytes};
    return enqueue(outbox, &shape, body, tail, fds);
}

int outbox_flush(struct outbox *outbox)
{
    while (outbox->first) {
        struct outbox_letter *letter = outbox->first;
        int result = channel_send(outbox->fd, letter->opcode, letter->serial, letter->client,
                                  letter->data, letter->data + letter->body_bytes,
                                  letter->tail_bytes, letter->fds, letter->fd_count);
        /* Too many descriptors of this user are under way in sockets: that passes, and what was
         * accepted for sending is sent. */
        if (later(result) || result == -ETOOMANYREFS)
            return OUTBOX_QUEUED;
        if (result < 0)
            return result;
        outbox_shift(outbox);
    }
    return 0;
}
