/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * outbox: sending messages to a peer that may not read, without ever waiting.
 *
 * What the socket does not take at once is copied, its descriptors duplicated, and
 * sent when the socket has room. What waits is bounded: a peer that lets it run full
 * has lost its connection.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_OUTBOX_H
#define GPUSHARE_SERVER_SUPERVISOR_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a waiting descriptor counts: they are scarcer than memory. */
#define OUTBOX_FD_BYTES 8192

struct outbox_letter;

struct outbox {
    int fd; /* borrowed; non-blocking */
    struct outbox_letter *first, *last;
    size_t bytes; /* queued; a descriptor counts as OUTBOX_FD_BYTES */
    size_t most;
};

enum { OUTBOX_QUEUED = 1 };

/* most: bytes that may wait. */
void outbox_open(struct outbox *outbox, int fd, size_t most);

/* Drops what waits. Idempotent. */
void outbox_close(struct outbox *outbox);

/*
 * Sends one message, as channel_send does; fds stay the caller's. Returns 0 when
 * sent; OUTBOX_QUEUED when it waits (then ask for writability); -ENOBUFS when the
 * queue is full; or another -errno.
 */
int outbox_send(struct outbox *outbox, uint16_t opcode, uint32_t serial, uint32_t client,
                const void *body, const void *tail, size_t tail_bytes, const int *fds,
                unsigned fd_count);

/* Sends what waits. Returns 0 when nothing does any more; OUTBOX_QUEUED; or -errno. */
int outbox_flush(struct outbox *outbox);

static inline bool outbox_waiting(const struct outbox *outbox)
{
    return outbox->first != NULL;
}

#endif
